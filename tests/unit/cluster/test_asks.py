"""Questions from host to host: asked until there is an answer, or patience ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agent_relay.cluster.asks import PATIENCE_MS, Asks, Told
from agent_relay.cluster.jetstream import Names
from agent_relay.ports.cluster import NO_HEADERS, Answered, Headers, Heard, WireMessage
from agent_relay.protocol.errors import ErrorCode, RelayError


class Air:
    """Request and reply, as NATS has them; what is said is carried when the test says so."""

    def __init__(self) -> None:
        self.listeners: dict[str, Heard] = {}
        self.later: list[Callable[[], object]] = []
        self.waiting: dict[str, Answered] = {}
        self.loses_answers = 0
        self.asked = 0

    def publish(self, subject: str, payload: bytes, headers: Headers = NO_HEADERS) -> bool:
        done = self.waiting.pop(subject)
        if self.loses_answers:
            self.loses_answers -= 1
            self.later.append(lambda: done(None))
        else:
            self.later.append(lambda: done(WireMessage(subject, payload, headers)))
        return True

    def ask(self, subject: str, payload: bytes, done: Answered, headers: Headers = NO_HEADERS) -> None:
        self.asked += 1
        reply = f"reply.{self.asked}"
        heard = self.listeners.get(subject)
        if heard is None:
            self.later.append(lambda: done(WireMessage(reply, b"", status="503")))
            return
        self.waiting[reply] = done
        self.later.append(lambda: heard(WireMessage(subject, payload, headers, reply)))

    def subscribe(self, subject: str, heard: Heard) -> int:
        self.listeners[subject] = heard
        return len(self.listeners)

    def unsubscribe(self, number: int) -> None:
        raise AssertionError("a host answers as long as it lives")

    def new_inbox(self) -> str:
        raise AssertionError("the wire has its own")


class Notes:
    def note(self, what: str, **fields: Any) -> None: ...


class Scene:
    def __init__(self) -> None:
        self.air = Air()
        self.now = 0
        self.a, self.b = (Asks(self.air, Names("demo"), host, Notes(), 0) for host in "ab")
        self.a.start()
        self.b.start()
        self.heard: list[tuple[str, bytes]] = []
        self.told: list[bytes | RelayError] = []
        self.b.answer("echo", self._echo)

    def _echo(self, host: str, body: bytes, told: Told) -> None:
        self.heard.append((host, body))
        told(body.upper())

    def pass_time(self, span_ms: int) -> None:
        for _ in range(max(1, span_ms // 50)):
            while self.air.later:
                self.air.later.pop(0)()
            self.now += min(50, span_ms)
            self.a.clock_says(self.now)


def test_a_question_is_answered_and_says_who_asks() -> None:
    scene = Scene()
    scene.a.ask("b", "echo", b"hello", scene.told.append)
    assert scene.told == []  # never from inside the call
    scene.pass_time(50)
    assert scene.heard == [("a", b"hello")]
    assert scene.told == [b"HELLO"]


def test_an_answer_that_is_lost_is_asked_for_again_and_told_once() -> None:
    scene = Scene()
    scene.air.loses_answers = 2
    scene.a.ask("b", "echo", b"hello", scene.told.append)
    scene.pass_time(5_000)
    assert len(scene.heard) == 3
    assert scene.told == [b"HELLO"]


def test_a_host_that_is_silent_is_an_error_in_the_end() -> None:
    scene = Scene()
    scene.a.ask("c", "echo", b"hello", scene.told.append)
    scene.pass_time(PATIENCE_MS - 500)
    assert scene.told == []
    scene.pass_time(1_000)
    (error,) = scene.told
    assert isinstance(error, RelayError)
    assert (error.code, error.details) == (ErrorCode.SERVICE_UNAVAILABLE, {"reason": "host_silent", "host": "c"})


def test_a_refusal_arrives_whole() -> None:
    scene = Scene()

    def refuse(host: str, body: bytes, told: Told) -> None:
        raise RelayError(ErrorCode.INVALID_TARGET, "No such folder.", field="payload.cwd", reason="cwd_not_found")

    scene.b.answer("echo", refuse)
    scene.a.ask("b", "echo", b"", scene.told.append)
    scene.pass_time(50)
    (error,) = scene.told
    assert isinstance(error, RelayError)
    assert (error.code, error.message) == (ErrorCode.INVALID_TARGET, "No such folder.")
    assert error.details == {"field": "payload.cwd", "reason": "cwd_not_found"}


def test_a_host_of_another_version_says_that_it_cannot() -> None:
    scene = Scene()
    scene.a.ask("b", "dance", b"", scene.told.append)
    scene.pass_time(50)
    assert isinstance(scene.told[0], RelayError)
    assert scene.told[0].code is ErrorCode.FEATURE_UNSUPPORTED


@pytest.mark.parametrize("payload", [b"", b"\xff", b"\x93\xa1a\xa4echo", b"\x93\x01\x02\x03"])
def test_noise_is_not_answered(payload: bytes) -> None:
    scene = Scene()
    scene.air.listeners["relay.demo.ask.b"](WireMessage("relay.demo.ask.b", payload, reply="reply.1"))
    assert scene.heard == []
    assert scene.air.later == []
