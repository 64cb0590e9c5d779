"""Frames of clients: what is taken, what is refused, who gets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.arc.stage import FREE, Stage

# --- what is taken ---------------------------------------------------------------------------------------------------------

WRONG = {
    "not JSON": (b"hello", None),
    "cut off": (b'{"to":["a"],', None),
    "null": (b"null", None),
    "a number": (b"7", None),
    "an array": (b'[{"to":["abc"],"payload":1}]', None),
    "empty": (b"", None),
    "no `to`": (b'{"payload":1}', "`to`"),
    "`to` is text": (b'{"to":"abc","payload":1}', "`to`"),
    "`to` is null": (b'{"to":null,"payload":1}', "`to`"),
    "`to` is empty": (b'{"to":[],"payload":1}', "`to`"),
    "`to` has a number": (b'{"to":["abc",1],"payload":1}', "`to`"),
    "no `payload`": (b'{"to":["abc"]}', "`payload`"),
    "`type` is a number": (b'{"to":["abc"],"payload":1,"type":1}', "`type`"),
    "a number out of range": (b'{"to":["abc"],"payload":1e999}', "`payload`"),
    "nested too deeply": (b'{"to":["abc"],"payload":' + b"[" * 5_000 + b"]" * 5_000 + b"}", None),
}


@pytest.mark.parametrize(("text", "field"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_message_is_refused_and_the_connection_lives(stage: Stage, text: bytes, field: str | None) -> None:
    with stage.connect() as client:
        client.connection.send(text, text=True)
        refused = client.next()
        assert (refused["type"], refused["error"]) == ("error", "invalid_message")
        assert refused["payload"] == {"code": "invalid_message", "error": "invalid_message", "message": refused["message"]}
        assert (refused["from"], refused["to"]) == ("relay", [client.me])
        assert field is None or field in refused["message"]
        assert client.ask("ping")["type"] == "pong"


def test_binary_frames_are_no_messages(stage: Stage) -> None:
    with stage.connect() as client:
        client.connection.send(b'{"to":["*"],"payload":1}')
        assert client.next()["error"] == "invalid_message"
        assert client.ask("ping")["type"] == "pong"


def test_an_error_has_the_ref_of_what_it_is_about(stage: Stage) -> None:
    with stage.connect() as client:
        client.say({"to": "abc", "payload": 1, "ref": {"mine": 7}})
        assert client.next()["ref"] == {"mine": 7}
        assert client.ask("nonsense", ref="r-1")["ref"] == "r-1"
        assert client.ask("ping", ref="r-2")["ref"] == "r-2"


def test_the_relay_says_who_and_when(stage: Stage) -> None:
    with stage.connect() as alice, stage.connect() as bob:
        alice.send([bob.me], "hi", id="mine", ts=1, **{"from": "somebody-else"})
        found = bob.next()
        assert found["from"] == alice.me
        assert found["id"].startswith("msg_")
        assert found["ts"] > 1_700_000_000_000
        assert found.keys() == {"id", "from", "to", "payload", "ts"}


@pytest.mark.parametrize(
    "payload",
    ["text", "", "ä\u2028\x00😀", None, True, 0, 1.5, 12345678901234567890, [], [1, [2]], {}, {"a": {"b": None}}, {"body": "x"}],
)
def test_every_payload_arrives_as_it_was(stage: Stage, payload: Any) -> None:
    with stage.connect() as alice, stage.connect() as bob:
        alice.send([bob.me], payload)
        found = bob.next()
        assert found["payload"] == payload
        assert type(found["payload"]) is type(payload)


def test_unknown_fields_go_along_unchanged(stage: Stage) -> None:
    fields = {"type": "offer", "ref": ["any", 1], "trace": {"x": [1, None]}, "topic": "t", "body": 7, "arc": True, "ü": "ß"}
    with stage.connect() as alice, stage.connect() as bob:
        alice.send([bob.me, "nobody-here"], 1, **fields)
        found = bob.next()
        assert {name: found[name] for name in fields} == fields
        assert found["to"] == [bob.me, "nobody-here"]


def test_a_message_in_fragments(stage: Stage) -> None:
    text = json.dumps({"to": ["PLACE"], "payload": "ä" * 3_000}, ensure_ascii=False)
    with stage.connect() as alice, stage.connect() as bob:
        whole = text.replace("PLACE", bob.me)
        alice.connection.send([whole[at : at + 7] for at in range(0, len(whole), 7)])
        assert bob.next()["payload"] == "ä" * 3_000


# --- who gets it -----------------------------------------------------------------------------------------------------------


def test_a_broadcast_is_for_everybody_else(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    with stage.connect() as alice, stage.connect() as bob, stage.connect() as carol:
        alice.send(["*"], 1)
        assert (bob.next()["payload"], carol.next()["to"]) == (1, ["*"])
        assert alice.ask("ping")["type"] == "pong"
        bob.send(["*", carol.me, alice.me], 2)  # once, though named as well
        assert alice.next()["payload"] == carol.next()["payload"] == 2
        bob.send(["*"], 3)
        assert alice.next()["payload"] == carol.next()["payload"] == 3


def test_direct_messages_are_for_those_who_are_named(stage: Stage) -> None:
    with stage.connect() as alice, stage.connect() as bob, stage.connect() as carol:
        alice.send([bob.me], 1)
        alice.send([bob.me, carol.me, bob.me], 2)
        assert [bob.next()["payload"], bob.next()["payload"]] == [1, 2]
        assert carol.next()["payload"] == 2
        alice.send([bob.me, carol.me], 3)
        assert bob.next()["payload"] == carol.next()["payload"] == 3


def test_who_names_itself_gets_its_message(stage: Stage) -> None:
    with stage.connect() as alice:
        alice.send([alice.me], "note")
        assert (alice.next()["payload"], alice.me) == ("note", alice.me)


def test_unknown_targets_are_passed_over_in_silence(stage: Stage) -> None:
    with stage.connect() as alice, stage.connect() as bob:
        alice.send(["no-such-agent"], 1)
        alice.send(["Not An Agent", "#channel", ""], 2)
        alice.send(["no-such-agent", bob.me, "#channel"], 3)
        assert bob.next()["payload"] == 3
        assert alice.ask("ping")["type"] == "pong"


def test_the_relay_wins_over_everybody(stage: Stage) -> None:
    with stage.connect() as alice, stage.connect() as bob:
        alice.say({"to": ["*", bob.me, "relay"], "type": "subscribe", "payload": 1})
        assert alice.next()["type"] == "error"  # the payload of a command that uses it is an object
        alice.say({"to": ["*", bob.me, "relay"], "type": "ping"})
        assert alice.next()["type"] == "pong"
        alice.send([bob.me], "after")
        assert bob.next()["payload"] == "after"


def test_messages_of_one_sender_stay_in_order(stage: Stage) -> None:
    with stage.connect() as alice, stage.connect() as bob:
        for number in range(300):
            alice.send(["*"] if number % 3 == 0 else [bob.me], number)
        assert [bob.next()["payload"] for _ in range(300)] == list(range(300))


# --- who is not there ------------------------------------------------------------------------------------------------------


def test_what_came_while_it_was_away_follows_in_order(stage: Stage) -> None:
    bob = stage.register()
    with stage.connect() as alice:
        with stage.connect(bob):
            pass
        for number in range(20):
            alice.send([bob.id], number, type="t")
        alice.send(["*"], "not for those who are away")
        seen = alice.command("history")["messages"]
        with stage.connect(bob) as back:
            stored = [back.next() for _ in range(20)]
            assert [found["payload"] for found in stored] == list(range(20))
            assert all(found["stored"] is True and found["type"] == "t" for found in stored)
            assert {found["id"]: found["ts"] for found in stored}.items() <= {one["id"]: one["ts"] for one in seen}.items()
            alice.send([bob.id], "live")
            live = back.next()
            assert (live["payload"], "stored" in live) == ("live", False)
        with stage.connect(bob) as again:
            alice.send([bob.id], "next")
            assert again.next()["payload"] == "next"


def test_a_thousand_are_kept_and_the_sender_is_told(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--queue-capacity=5")
    bob = stage.register()
    with stage.connect() as alice, stage.connect() as carol:
        for number in range(7):
            alice.send([bob.id, carol.me], number, ref=number)
        assert [carol.next()["payload"] for _ in range(7)] == list(range(7))
        refused = [alice.next() for _ in range(2)]
        assert [(one["error"], one["ref"]) for one in refused] == [("rate_limit", 5), ("rate_limit", 6)]
        assert bob.id in refused[0]["message"]
    with stage.connect(bob) as back:
        assert [back.next()["payload"] for _ in range(5)] == list(range(5))
        assert back.ask("ping")["type"] == "pong"


def test_an_ephemeral_relay_keeps_nothing(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--arc-ephemeral")
    bob = stage.register()
    with stage.connect() as alice:
        assert "offline" not in alice.welcome["capabilities"]
        alice.send([bob.id], "gone")
        assert alice.ask("ping")["type"] == "pong"
        with stage.connect(bob) as back:
            alice.send([bob.id], "here")
            assert back.next()["payload"] == "here"


def test_a_second_connection_takes_the_place_of_the_first(stage: Stage) -> None:
    bob = stage.register()
    with stage.connect() as alice, stage.connect(bob) as first, stage.connect(bob) as second:
        assert first.expect_close() == 4000
        alice.send([bob.id], 1)
        assert second.next()["payload"] == 1
        first.close()
        alice.send([bob.id], 2)
        assert second.next()["payload"] == 2
