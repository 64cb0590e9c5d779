"""Who is trusted at the other end of a socket, and in which folder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agent_relay.protocol import places
from agent_relay.sdk.errors import StrangerAtSocket
from agent_relay.sdk.peers import check_folder, check_peer, peer_uid, trusted_uids

OTHER = 54_321


def test_we_and_root_are_trusted_and_whom_the_user_names() -> None:
    me = os.geteuid()
    assert trusted_uids({}) == {me, 0}
    assert trusted_uids({"AGENT_RELAY_PEER_UIDS": "1001, 1002 x -1"}) == {me, 0, 1001, 1002}


def test_the_kernel_knows_who_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair(socket.AF_UNIX)
    with one, other:
        assert peer_uid(one) == os.geteuid()
        check_peer(one, "/s.sock", {})
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)
        if (real := os.getuid()) != 0:  # root is trusted by everybody
            with pytest.raises(
                StrangerAtSocket, match=rf"/s.sock belongs to another user \(uid {real}\).*AGENT_RELAY_PEER_UIDS={real}"
            ):
                check_peer(one, "/s.sock", {})
            check_peer(one, "/s.sock", {"AGENT_RELAY_PEER_UIDS": str(real)})


def test_a_folder_in_which_everybody_can_replace_the_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    check_folder(path, {})
    tmp_path.chmod(0o777)
    with pytest.raises(StrangerAtSocket, match="chmod o-w"):
        check_folder(path, {})
    tmp_path.chmod(0o1777)  # as the temporary directory is: there everybody can only replace what is theirs
    check_folder(path, {})
    with pytest.raises(FileNotFoundError):
        check_folder(str(tmp_path / "none" / "s.sock"), {})


def test_the_short_place_must_be_real_and_ours_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = tmp_path / "short"
    monkeypatch.setattr(places, "short_socket_directory", lambda _: str(short))
    path = str(short / "abc" / "s.sock")
    with pytest.raises(FileNotFoundError):
        check_folder(path, {})
    (short / "abc").mkdir(parents=True)
    for folder in (short, short / "abc"):
        short.chmod(0o700)
        (short / "abc").chmod(0o700)
        check_folder(path, {})
        folder.chmod(0o750)
        with pytest.raises(StrangerAtSocket, match=f"chmod 700 {folder}$"):
            check_folder(path, {})
    (short / "abc").chmod(0o700)
    short.rename(tmp_path / "elsewhere")
    short.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StrangerAtSocket, match="is not a directory that you own"):
        check_folder(path, {})
    short.unlink()
    (tmp_path / "elsewhere").rename(short)
    short.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    with pytest.raises(StrangerAtSocket, match="is not a directory that you own"):
        check_folder(path, {})
