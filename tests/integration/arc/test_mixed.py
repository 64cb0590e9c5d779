"""Agents over ARC and agents over the Unix socket are the same kind of agent."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from tests.integration.arc.stage import Stage


@pytest.mark.parametrize(
    ("payload", "body", "data"),
    [
        ("hello", "hello", None),
        ({"a": 1, "b": [2]}, '{"a":1,"b":[2]}', {"a": 1, "b": [2]}),
        ([1, "x"], '[1,"x"]', [1, "x"]),
        (None, "null", None),
        (7, "7", 7),
    ],
)
def test_from_arc_to_the_socket(stage: Stage, payload: Any, body: str, data: Any) -> None:
    with stage.daemon.connect_sync("Sock") as sock, stage.connect() as alice:
        alice.send(["sock"], payload, type="offer", extra=[1])
        found = sock.messages().receive(20)
        found.ack()
        assert (found.from_, found.body, found.data) == (alice.me, body, data)
        assert found.payload["arc"] == {"type": "offer", "extra": [1]}


@pytest.mark.parametrize(
    ("options", "payload"),
    [
        ({}, "hello"),
        ({"data": {"a": 1}}, {"body": "hello", "data": {"a": 1}}),
        ({"kind": "action"}, {"body": "hello", "kind": "action"}),
        ({"thread": "t1"}, {"body": "hello", "thread": "t1"}),
    ],
)
def test_from_the_socket_to_arc(stage: Stage, options: dict[str, Any], payload: Any) -> None:
    with stage.daemon.connect_sync("Sock") as sock, stage.connect() as alice:
        receipt = sock.send(alice.me, "hello", **options)
        found = alice.next()
        assert (found["from"], found["to"], found["payload"]) == ("Sock", [alice.me], payload)
        assert found["id"] == receipt.message_id


def test_broadcasts_go_both_ways(stage: Stage) -> None:
    with stage.daemon.connect_sync("Sock") as sock, stage.connect() as alice, stage.connect() as bob:
        alice.send(["*"], "from ARC")
        assert sock.messages().receive(20).body == bob.next()["payload"] == "from ARC"
        sock.send("*", "from the socket")
        assert alice.next()["payload"] == bob.next()["payload"] == "from the socket"


def test_a_subscriber_gets_what_a_socket_agent_publishes(stage: Stage) -> None:
    with stage.daemon.connect_sync("Sock") as sock, stage.connect() as alice, stage.connect() as bob:
        alice.ask("subscribe", {"agents": ["Sock"]})
        sock.publish("build.done", "green")
        found = alice.next()
        assert (found["payload"], found["topic"], found["from"]) == ("green", "build.done", "Sock")
        sock.send(bob.me, "private")
        assert bob.next()["payload"] == "private"
        assert alice.ask("ping")["type"] == "pong"


def test_each_of_several_recipients_is_told_whom_it_was_written_to(stage: Stage) -> None:
    with stage.daemon.connect_sync("Sock") as sock, stage.connect() as alice, stage.connect() as bob:
        sock.send([alice.me, bob.me], "to you two")
        assert [client.next()["to"] for client in (alice, bob)] == [[alice.me, bob.me]] * 2
        for client in (alice, bob):
            client.ask("subscribe", {"agents": ["Sock"]})
        sock.publish("build.done", "to nobody by name")
        assert [client.next()["to"] for client in (alice, bob)] == [[alice.me], [bob.me]]


def test_a_name_is_held_by_one_kind_alone(stage: Stage) -> None:
    with stage.daemon.connect_sync("Held-1"):
        answer = stage.http.post("/register", json={"agent_id": "held-1"})
        assert (answer.status_code, answer.json()["error"]) == (409, "agent_id_taken")
    answer = stage.http.post("/register", json={"agent_id": "held-1"})
    assert answer.status_code == 409  # it is known, though it is not there
    member = stage.register()
    for name in (member.id, member.id.upper()):
        with pytest.raises(RelayError) as refused, stage.daemon.connect_sync(name):
            pass
        assert refused.value.code is ErrorCode.PERMISSION_DENIED


def test_an_absent_arc_agent_is_written_to_from_the_socket(stage: Stage) -> None:
    member = stage.register()
    with stage.daemon.connect_sync("Sock") as sock:
        receipt = sock.send(member.id, "for later")
        assert receipt.queued == 1
        with stage.connect(member) as client:
            found = client.next()
            assert (found["payload"], found["stored"], found["id"]) == ("for later", True, receipt.message_id)
        listed = stage.http.get("/api/v1/agents").json()["agents"]
        assert next(one for one in listed if one["name"] == member.id)["cli"] == "arc"
