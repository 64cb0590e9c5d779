"""Requests of a door: told when they are asked, found while they can be answered, and told once when they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from agent_relay.protocol.requests import AgentRequest, PermissionRequest, QuestionRequest
from agent_relay.terminal.doors.door import Decision, NotOpen, Resolution
from agent_relay.terminal.doors.requests import DOOR, MAX_CHARACTERS, Asked, DoorRequests, cut, refusal
from tests.unit.terminal.doors.heard import Heard


class Released(Asked):
    def __init__(self, requests: Sequence[AgentRequest], keys: Mapping[str, str]) -> None:
        super().__init__(requests, keys)
        self.by: list[str] = []

    def release(self, by: str = "") -> None:
        self.by.append(by)


class Plain(DoorRequests[Released]):
    def ask(self, *questions: str) -> Released:
        id_ = self._new_id()
        if not questions:
            return self._tell(Released([PermissionRequest(f"{id_}-0", "?")], {}))
        keys = {f"{id_}-{n}": question for n, question in enumerate(questions)}
        return self._tell(Released([QuestionRequest(each, "?") for each in keys], keys))

    def find(self, id_: str) -> Released:
        return self._find(id_)[0]

    def settle(self, asked: Released) -> None:
        self._settle(asked, asked.granted, DOOR)


def test_they_are_told_found_and_ended_once() -> None:
    heard = Heard()
    requests = Plain(heard, "x")
    first, second = requests.ask(), requests.ask("a", "b")
    assert [request.id for request in heard.of("asked")] == ["x-1-0", "x-2-0", "x-2-1"]
    assert requests.find("x-2-1") is second
    first.ours = Resolution.DENIED
    for id_ in ("x-1-0", "x-9"):
        with pytest.raises(NotOpen, match="already answered"):
            requests.find(id_)
    for _ in range(2):
        requests.settle(second)
    assert heard.of("resolved") == [(id_, Resolution.ANSWERED, "door") for id_ in ("x-2-0", "x-2-1")]
    assert second.by == ["door"]
    assert requests.is_open
    requests.close()
    assert first.by == [""]
    assert not requests.is_open
    requests.settle(first)
    assert len(heard.of("resolved")) == 2


def test_a_question_is_answered_when_all_its_parts_are() -> None:
    asked = Plain(Heard(), "x").ask("a", "b", "b")
    one, two, same = asked.requests
    assert not asked.add_answer(one, "1")
    assert asked.add_answer(same, "2")
    assert asked.add_answer(two, "3")
    assert asked.answers == {"a": "1", "b": "3"}


def test_words_that_people_and_agents_are_shown() -> None:
    assert cut("\x1ba" + "b" * 3_000) == "\ufffda" + "b" * (MAX_CHARACTERS - 2)
    assert cut(7) == ""
    assert refusal(Decision(is_allowed=False, reason="too big", by="Alice")) == "Denied by Alice: too big"
    assert refusal(Decision(is_allowed=False)) == "Denied by the relay."
