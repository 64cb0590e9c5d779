from __future__ import annotations

from pathlib import Path

from agent_relay.storage.sqlite import errors


def test_errors_never_repeat_what_was_to_be_stored() -> None:
    assert "secret" not in str(errors.report(Path("/x/y"), ValueError("secret body")))
