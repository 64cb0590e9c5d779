"""The programs that may be started: the installed ones first, and no mode in which nobody is asked unless the owner allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.daemon.startable_clis import list_clis
from agent_relay.protocol.clis import KNOWN_CLIS


def test_they_are_listed_with_what_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("codex", "mine"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = list_clis({"mine"}, {"yolo"})
    assert [(each.name, each.is_installed) for each in found[:3]] == [("codex", True), ("mine", True), ("aider", False)]
    assert {each.name for each in found} == KNOWN_CLIS | {"mine"}
    by_name = {each.name: each for each in found}
    assert "danger-full-access" not in by_name["codex"].permission_modes
    assert "yolo" in by_name["gemini"].permission_modes
    assert by_name["claude"].install.startswith("npm install")
    assert (by_name["mine"].permission_modes, by_name["mine"].takes_model, by_name["mine"].install) == ([], False, "")
