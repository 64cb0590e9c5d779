"""Commands as values, and when two renderings are the same one."""

from __future__ import annotations

import pytest

from agent_relay.terminal.output.commands import (
    FileCommand,
    ReleaseCommand,
    ResultCommand,
    SendCommand,
    SpawnCommand,
    sounds_like,
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (SendCommand(("B",), "use *star* and `tick`"), SendCommand(("B",), "use star and tick"), True),
        (SendCommand(("B",), "a\n\n- b"), SendCommand(("B",), "a • b"), True),
        (SendCommand(("B",), "a"), SendCommand(("B",), "b"), False),
        (SendCommand(("B",), "a"), SendCommand(("C",), "a"), False),
        (SendCommand(("B",), "a"), SendCommand(("B",), "a", "thinking"), False),
        (SpawnCommand("D", "claude", "do *it*"), SpawnCommand("D", "claude", "do it"), True),
        (SpawnCommand("D", "claude", "x"), SpawnCommand("D", "codex", "x"), False),
        (ResultCommand("t-1", "a *b*"), ResultCommand("t-1", "a b"), True),
        (ResultCommand("t-1", "a"), ResultCommand("t-2", "a"), False),
        (FileCommand("a"), FileCommand("a"), True),
        (FileCommand("a"), ReleaseCommand("a"), False),
    ],
)
def test_renderings(one: SendCommand, other: SendCommand, same: bool) -> None:
    assert sounds_like(one, other) is same
    assert sounds_like(other, one) is same
