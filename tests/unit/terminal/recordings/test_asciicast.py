from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.terminal.recordings.asciicast import CastError, read_cast
from tests.unit.terminal.recorded_screens import cast_of


def test_a_recording() -> None:
    cast = read_cast(cast_of("claude/a"))
    assert (cast.header.width, cast.header.height, cast.header.title) == (120, 40, "claude")
    assert {event.kind for event in cast.events} == {"o", "i", "m"}


@pytest.mark.parametrize("content", ["", "{}", '{"version": 2, "width": 1, "height": 1}\n[1]', "\xff"])
def test_what_is_none(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.cast"
    file.write_text(content, "latin-1")
    with pytest.raises(CastError):
        read_cast(file)
