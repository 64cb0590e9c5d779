"""Completing a name reads a file, and never fails over what it finds there."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.cli.project.agents_file import read_names


def test_names_come_sorted(tmp_path: Path) -> None:
    (tmp_path / "agents.json").write_text('{"agents": [{"name": "bob"}, {"name": "Alice"}, {"name": "x; rm -rf"}, {"name": 5}]}')
    assert read_names(str(tmp_path)) == ["Alice", "bob"]


@pytest.mark.parametrize("content", [None, "", "[]", '{"agents": 5}', '{"agents": [5]}', "\xff"])
def test_anything_else_completes_to_nothing(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "agents.json").write_text(content, "latin-1")
    assert read_names(str(tmp_path)) == []
