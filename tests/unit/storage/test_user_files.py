"""Files that other processes of the user write: whatever stands in them, nobody who looks is told more than that."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.private_files import replace_private
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.storage.live_screens import LIVE_FILE, LiveScreenFiles
from agent_relay.storage.screens import SIGHT_FILE, ScreenFiles
from agent_relay.storage.workspaces import WORKSPACES_FILE, WorkspaceFile

DAMAGED = [b"", b"{", b"\xff", b'{"rows": ["\xff"]}', b'{"workspaces": [{"path": "\xff", "name": ""}]}', b'{"title": "\xff"}\n']


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_screen_is_none(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "team" / "Bob"
    folder.mkdir(parents=True)
    (folder / SIGHT_FILE).write_bytes(content)
    (folder / LIVE_FILE).write_bytes(content)
    assert ScreenFiles(str(tmp_path)).screen("Bob") is None
    assert ScreenFiles(str(tmp_path)).output("Bob", 5) is None
    assert LiveScreenFiles(str(tmp_path)).read("Bob", None) is None


@pytest.mark.parametrize("content", [content for content in DAMAGED if b"rows" not in content and b"title" not in content])
def test_a_damaged_list_of_workspaces_is_said_to_be_unreadable(tmp_path: Path, content: bytes) -> None:
    (tmp_path / WORKSPACES_FILE).write_bytes(content)
    with pytest.raises(RelayError, match="cannot be read") as error:
        WorkspaceFile(str(tmp_path), str(tmp_path)).all()
    assert error.value.code is ErrorCode.SERVICE_UNAVAILABLE


def test_a_damaged_list_of_agents_is_empty(tmp_path: Path) -> None:
    workspaces = WorkspaceFile(str(tmp_path), str(tmp_path))
    (own,) = workspaces.all()
    folder = tmp_path / "projects" / own.id
    folder.mkdir(parents=True)
    (folder / "agents.json").write_bytes(b'{"agents": [{"name": "\xff"}]}')
    assert workspaces.agents(own.id) == []


def test_a_list_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / WORKSPACES_FILE).mkdir()
    workspaces = WorkspaceFile(str(tmp_path), str(tmp_path))
    with pytest.raises(IsADirectoryError):
        replace_private(str(tmp_path / WORKSPACES_FILE), b"{}")
    assert [each.name for each in tmp_path.iterdir()] == [WORKSPACES_FILE]
    with pytest.raises(RelayError, match="cannot be read"):
        workspaces.add(str(tmp_path), None)
