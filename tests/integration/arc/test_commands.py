"""What the relay itself is asked: subscriptions, history, presence, hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.arc.stage import FREE, Client, Stage


def test_ping_needs_no_payload(stage: Stage) -> None:
    with stage.connect() as client:
        found = client.ask("ping")
        assert found.keys() == {"id", "from", "to", "type", "payload", "ts"}
        assert (found["from"], found["to"], found["type"]) == ("relay", [client.me], "pong")


@pytest.mark.parametrize("payload", ["", "x", 0, [], [1], {}, None, True])
def test_a_payload_that_a_command_does_not_use_is_not_looked_at(stage: Stage, payload: Any) -> None:
    with stage.connect() as client:
        for kind, answer in (("ping", "pong"), ("list_subscriptions", "subscriptions")):
            client.say({"to": ["relay"], "type": kind, "payload": payload, "ref": "r"})
            found = client.next()
            assert (found["type"], found["ref"]) == (answer, "r")
        if not isinstance(payload, dict) and payload is not None:
            client.say({"to": ["relay"], "type": "subscribe", "payload": payload})
            assert client.next()["error"] == "invalid_message"


@pytest.mark.parametrize("kind", [None, "PING", "welcome", "nonsense", ""])
def test_other_types_are_not_known(stage: Stage, kind: str | None) -> None:
    with stage.connect() as client:
        client.say({"to": ["relay"], "payload": {}} | ({} if kind is None else {"type": kind}))
        assert client.next()["error"] == "unknown_type"


def test_subscriptions_are_named_sorted_and_counted(stage: Stage) -> None:
    with stage.connect() as client:
        first = client.ask("subscribe", {"agents": ["zoe-1", "bob-1", "bob-1"]})
        assert (first["type"], first["payload"]) == ("subscribed", {"agents": ["bob-1", "zoe-1"], "count": 2})
        older = client.ask("subscribe", {"subscribe_to": ["amy-1"]})
        assert older["payload"] == {"agents": ["amy-1", "bob-1", "zoe-1"], "count": 3}
        fewer = client.ask("unsubscribe", {"agents": ["bob-1", "never-there"]})
        assert (fewer["type"], fewer["payload"]) == ("unsubscribed", {"agents": ["amy-1", "zoe-1"], "count": 2})
        listed = client.ask("list_subscriptions")
        assert (listed["type"], listed["payload"]) == ("subscriptions", {"agents": ["amy-1", "zoe-1"]})


@pytest.mark.parametrize(
    "payload", [{}, {"agents": "bob-1"}, {"agents": []}, {"agents": [1]}, {"agents": ["*"]}, {"agents": ["a b"]}]
)
def test_subscriptions_that_cannot_be(stage: Stage, payload: Any) -> None:
    with stage.connect() as client:
        refused = client.ask("subscribe", payload)
        assert (refused["error"], "`payload.agents`" in refused["message"]) == ("invalid_message", True)
        assert client.ask("list_subscriptions")["payload"] == {"agents": []}


def test_subscriptions_outlive_connections_of_either_side(stage: Stage) -> None:
    bob = stage.register()
    with stage.connect(bob) as client:
        client.ask("subscribe", {"agents": ["zoe-1"]})
    with stage.connect(bob) as client:
        assert client.ask("list_subscriptions")["payload"] == {"agents": ["zoe-1"]}


def test_a_subscriber_reads_no_direct_messages(stage: Stage) -> None:
    with stage.connect() as alice, stage.connect() as bob, stage.connect() as spy:
        spy.ask("subscribe", {"agents": [alice.me, bob.me]})
        alice.send([bob.me], "private")
        assert bob.next()["payload"] == "private"
        bob.send([alice.me], "private too")
        assert alice.next()["payload"] == "private too"
        alice.send(["*"], "public")
        found = spy.next()
        assert (found["payload"], found["from"]) == ("public", alice.me)
        assert bob.next()["payload"] == "public"
        assert spy.ask("ping")["type"] == "pong"


# --- persistence -----------------------------------------------------------------------------------------------------------


def read(found: dict[str, Any]) -> list[Any]:
    return [message["payload"] for message in found["messages"]]


@pytest.fixture
def talk(make_stage: Callable[..., Stage]) -> Any:
    stage = make_stage(*FREE)
    with stage.connect() as alice, stage.connect() as bob, stage.connect() as carol:
        alice.send([bob.me], "one apple", type="fruit", note=1)
        alice.send(["*"], "two pears")
        bob.send([alice.me], {"three": "plums"})
        bob.send([carol.me], "four secret apples")
        for client, count in ((bob, 2), (alice, 1), (carol, 2)):
            for _ in range(count):
                client.next()
        yield stage, alice, bob, carol


def test_history_is_ones_own_and_what_was_said_to_all(talk: tuple[Stage, Client, Client, Client]) -> None:
    stage, alice, bob, carol = talk
    assert read(alice.command("history")) == ["one apple", "two pears", {"three": "plums"}]
    assert read(bob.command("history")) == ["one apple", "two pears", {"three": "plums"}, "four secret apples"]
    assert read(carol.command("history")) == ["two pears", "four secret apples"]
    with stage.connect() as late:
        assert read(late.command("history")) == []  # it was not there when that was said
    first = alice.command("history")["messages"][0]
    assert (first["type"], first["note"], first["from"], first["to"]) == ("fruit", 1, alice.me, [bob.me])
    assert alice.command("history", limit=2)["more"] is True
    assert read(alice.command("history", limit=2)) == ["two pears", {"three": "plums"}]
    assert read(alice.command("history", since=first["ts"] + 86_400_000)) == []


def test_search_finds_words_in_what_one_may_see(talk: tuple[Stage, Client, Client, Client]) -> None:
    _, alice, bob, carol = talk
    assert read(alice.command("search", query="apple")) == ["one apple"]
    assert read(bob.command("search", query="apples")) == ["four secret apples"]
    assert read(carol.command("search", query="pears")) == ["two pears"]
    assert read(alice.command("search", query="plums")) == [{"three": "plums"}]


def test_replay_goes_on_after_a_message(talk: tuple[Stage, Client, Client, Client]) -> None:
    _, alice, bob, _ = talk
    first = bob.command("history")["messages"][0]["id"]
    assert read(bob.command("replay", since_message_id=first)) == ["two pears", {"three": "plums"}, "four secret apples"]
    page = bob.command("replay", since_message_id=first, limit=2)
    assert (read(page), page["more"]) == (["two pears", {"three": "plums"}], True)
    rest = bob.command("replay", since_message_id=page["messages"][-1]["id"], limit=2)
    assert (read(rest), rest["more"]) == (["four secret apples"], False)
    assert read(alice.command("replay", since_message_id=first)) == ["two pears", {"three": "plums"}]


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"command": "history", "limit": "x"}, "invalid_message"),
        ({"command": "history", "since": -1}, "invalid_message"),
        ({"command": "search"}, "invalid_message"),
        ({"command": "replay"}, "invalid_message"),
        ({"command": "replay", "since_message_id": "x"}, "invalid_message"),
        ({"command": 7}, "invalid_message"),
        ({}, "invalid_message"),
        ({"command": "nonsense"}, "unknown_type"),
    ],
)
def test_commands_that_cannot_be(stage: Stage, payload: Any, code: str) -> None:
    with stage.connect() as client:
        assert client.ask("command", payload)["error"] == code


# --- presence --------------------------------------------------------------------------------------------------------------


def test_presence_is_told_to_those_who_ask(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    bob = stage.register("bob-1")
    with stage.connect(stage.register("alice-1")) as alice:
        assert alice.command("presence_list")["agents"] == [
            {"agent": "alice-1", "connected": True}, {"agent": "bob-1", "connected": False},
        ]  # fmt: skip
        assert alice.command("presence_subscribe")["on"] is True
        with stage.connect(bob) as other:
            found = alice.next()
            assert (found["type"], found["payload"]) == ("presence", {"event": "join", "agent": "bob-1"})
            assert other.ask("ping")["type"] == "pong"
        assert alice.next()["payload"] == {"event": "leave", "agent": "bob-1"}
        with stage.daemon.connect_sync("Sock"):
            assert alice.next()["payload"] == {"event": "join", "agent": "Sock"}
        assert alice.next()["payload"] == {"event": "leave", "agent": "Sock"}
        assert alice.command("presence_unsubscribe")["on"] is False
        with stage.connect(bob):
            assert alice.ask("ping")["type"] == "pong"


# --- hooks -----------------------------------------------------------------------------------------------------------------

HOOK = """
import threading, time

class Count:
    name = "count"
    def __init__(self):
        self.seen = []
    def joined(self, agent_id):
        self.seen.append(["joined", agent_id])
    def routed(self, message):
        self.seen.append(["routed", message])
        if message["payload"] == "fail":
            raise RuntimeError("on purpose")
    def command(self, agent_id, command, payload):
        return {"seen": self.seen, "by": agent_id, "got": payload.get("x")} if command == "show" else None

class Stuck:
    name = "stuck"
    def routed(self, message):
        threading.Event().wait()
"""


def test_hooks_hear_and_answer_and_cannot_stop_anything(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc=false")
    file = stage.daemon.directory / "my_hooks.py"
    file.write_text(HOOK)
    stage.daemon.restart("--port=0", *FREE, f"--arc-hooks={file}:Count,{file}:Stuck")
    stage.find()
    with stage.connect() as alice, stage.connect() as bob:
        assert alice.welcome["extensions"][-2:] == ["count", "stuck"]
        for number in range(1_500):  # more than a hook that is stuck can be behind
            alice.send([bob.me], number)
            if number % 500 == 0:
                alice.command("count:show")  # the other one keeps up, however busy the machine is
        alice.send([bob.me], "fail", mark=True)
        assert [bob.next()["payload"] for _ in range(1_501)] == [*range(1_500), "fail"]
        found = alice.command("count:show", x=7)
        assert (found["by"], found["got"]) == (alice.me, 7)
        assert found["seen"][:2] == [["joined", alice.me], ["joined", bob.me]]
        assert found["seen"][-1] == ["routed", {"from": alice.me, "to": [bob.me], "payload": "fail", "mark": True}]
        assert alice.ask("command", {"command": "count:other"})["error"] == "unknown_type"
        assert alice.ask("command", {"command": "nobody:show"})["error"] == "unknown_type"
