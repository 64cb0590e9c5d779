from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from msgspec import Struct

from agent_relay.terminal.files import private_files
from agent_relay.terminal.files.private_files import NotPrivate, load_private, make_private_folder, save_private


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


def test_a_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    make_private_folder(str(tmp_path / "a" / "b"))
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    (tmp_path / "open").mkdir(mode=0o755)
    make_private_folder(str(tmp_path / "open"))
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o700


def test_a_folder_that_is_a_link_or_somebody_else_s_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(NotPrivate, match="not a directory that you own"):
        make_private_folder(str(tmp_path / "link"))
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(NotPrivate, match="not a directory that you own"):
        make_private_folder(str(tmp_path))


def test_the_short_place_is_looked_at_too_and_not_only_what_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs" / "abc").mkdir(parents=True)
    (tmp_path / "short").symlink_to(tmp_path / "theirs")
    monkeypatch.setattr(private_files, "short_socket_directory", lambda _: str(tmp_path / "short"))
    with pytest.raises(NotPrivate, match="short is not a directory that you own"):
        make_private_folder(str(tmp_path / "short" / "abc"))
