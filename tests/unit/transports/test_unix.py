"""The socket's place: who may connect, what may lie there, and what is never removed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.transports import unix
from agent_relay.transports.unix import AnotherDaemon, SocketUnusable, open_socket, peer_uid

from .parts import FRAME, Served, run, serve, until


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def leave_stale_socket(path: str) -> None:
    """What a killed daemon leaves behind."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
        dead.listen()


# --- the place --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shared", "expected"), [(False, 0o600), (True, 0o666)])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_those_who_may_connect_can(path: str, shared: bool, expected: int, umask: int) -> None:
    before = os.umask(umask)
    try:
        open_socket(path, shared=shared).close()
        assert mode(path) == expected
        assert os.umask(umask) == umask
    finally:
        os.umask(before)


def test_there_is_no_moment_when_others_could_connect(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    monkeypatch.setattr(unix.os, "chmod", lambda path, _mode: modes.append(mode(path)))
    open_socket(path, shared=False).close()
    assert modes == [0o600]


def test_a_stale_socket_is_replaced(path: str) -> None:
    leave_stale_socket(path)
    with open_socket(path, shared=False) as listener:
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)


def test_a_socket_somebody_listens_on_is_left_alone(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen()
        with pytest.raises(AnotherDaemon, match="already listening"):
            open_socket(path, shared=False)
        assert stat.S_ISSOCK(os.lstat(path).st_mode)


@pytest.mark.parametrize("kind", ["file", "directory", "link to a file"])
def test_what_is_no_socket_is_refused_and_kept(folder: str, path: str, kind: str) -> None:
    match kind:
        case "file":
            Path(path).write_text("precious")
        case "directory":
            Path(path).mkdir()
        case _:
            Path(folder, "precious").write_text("precious")
            os.symlink(f"{folder}/precious", path)
    with pytest.raises(SocketUnusable, match="is not a socket"):
        open_socket(path, shared=False)
    assert os.path.lexists(path)
    assert kind == "directory" or Path(path).read_text() == "precious"


def test_a_path_that_is_too_long_or_nowhere_is_said_to_be_so(folder: str) -> None:
    with pytest.raises(SocketUnusable, match="cannot be opened"):
        open_socket(f"{folder}/{'x' * 120}", shared=False)
    with pytest.raises(SocketUnusable, match="cannot be opened: No such file"):
        open_socket(f"{folder}/nowhere/relay.sock", shared=False)


def test_the_file_goes_when_nobody_listens_any_more(path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            assert os.path.exists(path)
            served.server.stop_listening()
            assert not os.path.exists(path)
            served.server.stop_listening()

    run("uvloop", test)


@pytest.mark.parametrize("what", ["a live socket", "a file"])
def test_a_server_that_never_started_removes_nothing(path: str, what: str) -> None:
    async def test() -> None:
        server = Served(path).server
        with pytest.raises(SocketUnusable):
            await server.start()
        server.stop_listening()
        assert os.path.lexists(path)

    with socket.socket(socket.AF_UNIX) as other:
        if what == "a file":
            Path(path).write_text("precious")
        else:
            other.bind(path)
            other.listen()
        run("uvloop", test)


# --- who connects -------------------------------------------------------------------------------------------------------


def test_the_kernel_says_who_is_there() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert peer_uid(ours) == os.geteuid()


def test_another_user_is_cut_off_before_a_byte_is_answered(loop_kind: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix, "peer_uid", lambda _socket: os.geteuid() + 1)

    async def test() -> None:
        async with serve(path) as served:
            served.relay.answer = lambda peer, _frames: peer.connection.send(FRAME)
            client = served.dial()
            client.send(FRAME)
            with contextlib.suppress(ConnectionResetError):  # cut off with our frame unread
                assert await served.read_to_end(client) == b""
            assert served.relay.peers == []
            assert not served.server.connections

    run(loop_kind, test)


def test_a_user_who_is_allowed_comes_in_under_its_own_id(loop_kind: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.geteuid() + 1
    monkeypatch.setattr(unix, "peer_uid", lambda _socket: other)

    async def test() -> None:
        async with serve(path, allowed_uids=frozenset({other})) as served:
            _, peer = await served.connect()
            assert peer.uid == other
            assert mode(path) == 0o666

    run(loop_kind, test)


def test_a_process_that_belongs_to_another_user_is_refused_by_the_kernel_s_word(path: str) -> None:
    """The same without any patch, where the test may change users; elsewhere the kernel's word is checked on our own."""
    dial = (
        "import os, socket, sys\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "client = socket.socket(socket.AF_UNIX); client.connect(sys.argv[1]); client.settimeout(10)\n"
        "print(os.geteuid(), repr(client.recv(1)))\n"
    )

    async def test() -> None:
        async with serve(path) as served:
            served.relay.at_turn_end = None
            os.chmod(path, 0o666)
            os.chmod(os.path.dirname(path), 0o755)
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", dial, path, stdout=subprocess.PIPE)
            if os.geteuid() == 0:
                output, _ = await process.communicate()
                assert output.split() == [b"65534", b"b''"]
                assert served.relay.peers == []
            else:
                await until(lambda: served.relay.peers)
                assert served.relay.peers[0].uid == os.geteuid()
                served.relay.peers[0].connection.send(b"x")
                await process.communicate()

    run("asyncio", test)


# --- the end ------------------------------------------------------------------------------------------------------------


def test_draining_waits_for_last_words_but_not_for_ever(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            _, peer = await served.connect()
            reader, lively = await served.connect()
            served.pump.run(lambda: peer.connection.send(b"x" * 1_000_000))
            await until(lambda: peer.connection.unsent_bytes)
            served.pump.run(lambda: lively.connection.send(FRAME))
            assert await served.read(reader, len(FRAME)) == FRAME
            started = asyncio.get_running_loop().time()
            await served.server.drain(0.2)
            assert 0.15 < asyncio.get_running_loop().time() - started < 5

    run(loop_kind, test)


def test_draining_nobody_takes_no_time(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, _ = await served.connect()
            client.close()
            await served.server.drain(60)

    run(loop_kind, test)
