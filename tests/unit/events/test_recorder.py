"""Events are gathered and given to the store together."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.events.drafts import Draft, Lost, Note
from agent_relay.events.recorder import Recorder
from agent_relay.events.types import StreamGap


def test_what_is_told_in_one_moment_is_appended_at_once_and_in_order() -> None:
    appended: list[list[Draft]] = []
    later: list[Callable[[], None]] = []
    recorder = Recorder(appended.append, later.append)
    event = StreamGap(oldest=1)
    recorder.publish(event, agent="Alice", session_id="s", at_ms=1)
    recorder.record([Lost(2)])
    assert appended == []
    assert len(later) == 1
    later.pop()()
    assert appended == [[Note(event, "Alice", "s", 1), Lost(2)]]
    recorder.record([Lost(3)])
    assert len(later) == 1
    recorder.flush()
    recorder.flush()
    later.pop()()
    assert appended[1:] == [[Lost(3)]]


def test_what_is_held_waits_for_what_is_to_come_first() -> None:
    appended: list[list[Draft]] = []
    later: list[Callable[[], None]] = []
    recorder = Recorder(appended.append, later.append)
    recorder.hold()
    recorder.record([Lost(2)])
    recorder.flush()
    assert (appended, later) == ([], [])
    recorder.release([Lost(1)])
    assert appended == [[Lost(1), Lost(2)]]
    recorder.record([Lost(3)])
    later.pop()()
    assert appended[1:] == [[Lost(3)]]
