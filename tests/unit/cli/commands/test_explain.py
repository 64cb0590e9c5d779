"""A message's life, told from its record."""

from __future__ import annotations

import io

from agent_relay.cli.commands.explain import show_life, timeline
from agent_relay.cli.output.screen import Screen
from agent_relay.sdk.views import MessageView

MESSAGE = {
    "message_id": "msg_1", "from": "Alice", "to": "Bob", "ts": 1_000, "kind": "message", "payload": {"body": "hi\x1b[2J"},
    "recipients": [{"name": "Bob", "seq": 3, "status": "delivered"}], "skipped": ["Carol"],
}  # fmt: skip
TRAIL = [
    {"at": 1_010, "event": "sent", "to": "Bob", "detail": ""},
    {"at": 6_020, "event": "resent", "to": "Bob", "detail": "attempt 2"},
    {"at": 6_030, "event": "busy", "to": "Bob", "detail": "again in 100 ms"},
    {"at": 6_150, "event": "acknowledged", "to": "Bob", "detail": ""},
    {"at": 6_160, "event": "something_new", "to": "Bob", "detail": "\x1b]0;x\x07"},
]
INSIDE = [
    {"at": 1_010, "event": "sent", "to": "Bob", "detail": ""},
    {"at": 1_020, "event": "received", "to": "Bob", "detail": ""},
    {"at": 2_000, "event": "injected", "to": "Bob", "detail": "door typing, seen: composer"},
    {"at": 3_000, "event": "read", "to": "Bob", "detail": "seen: transcript"},
]


def test_every_step_is_a_sentence() -> None:
    assert [f"{event}{rest}" for _, event, rest in timeline(MESSAGE, TRAIL)] == [
        "stored from Alice to Bob, 1 recipient",
        "sent to Bob, number 3 in its stream",
        "resent to Bob, attempt 2",
        "busy: Bob, again in 100 ms",
        "acknowledged by Bob",
        "something_new Bob, \\x1b]0;x\\x07",
    ]


def test_the_way_into_an_agent_is_told_with_its_evidence() -> None:
    assert [f"{event}{rest}" for _, event, rest in timeline(MESSAGE, INSIDE)][2:] == [
        "received by Bob",
        "injected into Bob, door typing, seen: composer",
        "read by Bob, seen: transcript",
    ]
    stream = io.StringIO()
    show_life(Screen(stream), MessageView(MESSAGE, INSIDE))
    assert "Bob  read, 2 s after it was stored" in stream.getvalue()


def test_the_steps_show_the_time_between_them() -> None:
    stream = io.StringIO()
    show_life(Screen(stream), MessageView(MESSAGE, TRAIL[:4]))
    shown = stream.getvalue()
    assert "\x1b" not in shown
    for part in ("+10 ms", "+5 s", "+120 ms", "Bob  delivered, 5.2 s after it was stored", "queues were full: Carol"):
        assert part in shown
