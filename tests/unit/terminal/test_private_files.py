from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from msgspec import Struct

from agent_relay.terminal.private_files import load_private, save_private


class Kept(Struct):
    names: list[str] = []


def test_what_was_kept_is_found_again_and_is_the_user_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    save_private(str(path), Kept(["one"]))
    assert load_private(str(path), Kept) == Kept(["one"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["kept.json"]


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"names": 7}'])
def test_what_cannot_be_read_is_as_if_nothing_had_been_kept(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "kept.json"
    if content is not None:
        path.write_bytes(content)
    assert load_private(str(path), Kept) == Kept()


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b'{"names": ["theirs"]}')
    (tmp_path / "kept.json").symlink_to(tmp_path / "elsewhere")
    assert load_private(str(tmp_path / "kept.json"), Kept) == Kept()
