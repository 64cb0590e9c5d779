"""Hooks on their way: the small program a CLI runs and the socket it talks to; with garbage, silence and strangers there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.doors.hooks import (
    CLIENT,
    Handler,
    HookServer,
    hook_command,
    hook_socket_path,
    hook_words,
    notice_command,
)

DEADLINE_S = 60.0
START_S = 0.1  # what a CLI may be made to wait, at every prompt and every permission
GIVEN = {"tool_name": "Bash", "tool_input": {"command": "rm -rf build"}}


@pytest.fixture
def path() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="relay-hk-") as folder:
        yield os.path.join(folder, "hooks.sock")


async def run_client(path: str, given: bytes, seconds: float = 5.0) -> tuple[int, bytes, bytes]:
    words = hook_words(path, "PreToolUse", seconds)

    def call() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(words, input=given, capture_output=True, timeout=DEADLINE_S, check=False)

    done = await asyncio.to_thread(call)
    return done.returncode, done.stdout, done.stderr


def play(path: str, handle: Handler, scene: Callable[[HookServer], Awaitable[None]]) -> None:
    async def run() -> None:
        server = HookServer(path, handle)
        await server.open()
        try:
            await scene(server)
        finally:
            await server.close()

    asyncio.run(run())


async def say_nothing(event: str, given: dict[str, Any]) -> str | None:
    return None


def test_what_the_cli_says_arrives_and_what_we_say_is_printed(path: str) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []

    async def handle(event: str, given: dict[str, Any]) -> str | None:
        heard.append((event, given))
        return '{"decision": "deny", "reason": "nö"}' if given else None

    async def scene(server: HookServer) -> None:
        assert await run_client(path, json.dumps(GIVEN).encode()) == (0, '{"decision": "deny", "reason": "nö"}'.encode(), b"")
        assert await run_client(path, b"") == (0, b"", b"")
        assert heard == [("PreToolUse", GIVEN), ("PreToolUse", {})]

    play(path, handle, scene)


def test_only_the_user_can_come_in(path: str) -> None:
    async def scene(server: HookServer) -> None:
        assert [os.stat(each).st_mode & 0o777 for each in (path, f"{path}.token")] == [0o600, 0o600]
        token = Path(f"{path}.token")
        own = token.read_bytes()
        token.write_bytes(b"of somebody else")
        assert await run_client(path, b"{}") == (0, b"", b"")
        token.write_bytes(own)
        assert await run_client(path, b"{}") == (0, b"yes", b"")

    async def handle(event: str, given: dict[str, Any]) -> str | None:
        return "yes"

    play(path, handle, scene)
    assert os.listdir(os.path.dirname(path)) == []


@pytest.mark.parametrize(
    "sent",
    [b"{", b"[]", b'"text"', b"\xff\xfe", b"[" * 100_000, b'{"a": "\\ud800"}'],
    ids=["half", "list", "text", "no text", "deep", "surrogate"],
)
def test_what_is_not_understood_decides_nothing(path: str, sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def handle(event: str, given: dict[str, Any]) -> str | None:
        raise AssertionError("It was understood.")

    async def scene(server: HookServer) -> None:
        assert await run_client(path, sent) == (0, b"", b"")

    play(path, handle, scene)
    assert [record.levelname for record in caplog.records if record.levelno > 20] == []


@pytest.mark.parametrize(
    "head", [b"", b"{token}", b"{token}\nStop\n-1\n", b"{token}\nStop\nmany\n{}", b"{token}\nStop\n99999999999\n"]
)
def test_a_head_that_is_none_ends_the_connection(path: str, head: bytes) -> None:
    async def scene(server: HookServer) -> None:
        token = Path(f"{path}.token").read_bytes()
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(head.replace(b"{token}", token))
        writer.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            assert await reader.read() == b""
        writer.close()

    play(path, say_nothing, scene)


def test_a_handler_that_fails_leaves_it_to_the_cli(path: str) -> None:
    async def handle(event: str, given: dict[str, Any]) -> str | None:
        raise RuntimeError("of ours")

    async def scene(server: HookServer) -> None:
        assert await run_client(path, b"{}") == (0, b"", b"")

    play(path, handle, scene)


def test_a_handler_that_takes_too_long_is_not_waited_for(path: str) -> None:
    release = asyncio.Event()

    async def handle(event: str, given: dict[str, Any]) -> str | None:
        await release.wait()
        return "too late"

    async def scene(server: HookServer) -> None:
        assert await run_client(path, b"{}", seconds=0.3) == (0, b"", b"")
        release.set()

    play(path, handle, scene)


def test_a_notice_is_not_waited_for(path: str) -> None:
    """What it says arrives; the command has ended by then, also where we take our time."""
    release, heard = asyncio.Event(), asyncio.Queue[tuple[str, dict[str, Any]]]()

    async def handle(event: str, given: dict[str, Any]) -> str | None:
        heard.put_nowait((event, given))
        await release.wait()
        return "nobody hears this"

    async def scene(server: HookServer) -> None:
        command = ["sh", "-c", notice_command(path, "ToolStarted", 5.0)]

        def call() -> subprocess.CompletedProcess[bytes]:
            return subprocess.run(command, input=json.dumps(GIVEN).encode(), capture_output=True, timeout=DEADLINE_S, check=False)

        done = await asyncio.to_thread(call)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        async with asyncio.timeout(DEADLINE_S):
            assert await heard.get() == ("ToolStarted", GIVEN)
        release.set()

    play(path, handle, scene)


def test_a_wrapper_that_goes_meanwhile_gives_half_an_answer_which_is_none(path: str) -> None:
    reached = asyncio.Event()

    async def handle(event: str, given: dict[str, Any]) -> str | None:
        reached.set()
        await asyncio.Event().wait()
        return "never"

    async def scene(server: HookServer) -> None:
        client = asyncio.create_task(run_client(path, b"{}", seconds=DEADLINE_S))
        await reached.wait()
        await server.close()
        assert await client == (0, b"", b"")

    play(path, handle, scene)


@pytest.mark.parametrize("said", [b"", b"half an answer", b"half\nof it"])
def test_a_stranger_at_the_socket_is_not_believed(path: str, said: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(said)
            await writer.drain()
        writer.close()

    async def scene() -> None:
        Path(f"{path}.token").write_bytes(b"x")
        server = await asyncio.start_unix_server(serve, path)
        try:
            assert await run_client(path, b"{}") == (0, b"", b"")
        finally:
            server.close()

    asyncio.run(scene())


def test_the_command_ends_well_where_nothing_is(path: str) -> None:
    command = hook_command(path, "Stop", 5)
    for prepare in (lambda: None, lambda: Path(path).write_text("no socket"), lambda: Path(path).unlink()):
        prepare()
        done = subprocess.run(["/bin/sh", "-c", command], input=b"{}", capture_output=True, timeout=DEADLINE_S, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_path_that_is_too_long_for_a_socket_is_put_elsewhere() -> None:
    assert hook_socket_path("/p/team/Bob", "0123456789ab", "Bob") == "/p/team/Bob/hooks.sock"
    assert len(hook_socket_path("/p/" + "deep/" * 40, "0123456789ab", "Bob")) < 100


# --- what it costs ---------------------------------------------------------------------------------------------------------


def test_it_starts_in_less_than_a_tenth_of_a_second(path: str) -> None:
    """The best of ten, by what its process used: a busy machine makes the others wait, and is not what is measured."""

    async def scene(server: HookServer) -> None:
        took = []
        for _ in range(10):
            before, began = os.times(), time.monotonic()
            assert (await run_client(path, json.dumps(GIVEN).encode()))[0] == 0
            used = os.times()
            cpu = used.children_user + used.children_system - before.children_user - before.children_system
            took.append(min(cpu, time.monotonic() - began))
        assert min(took) < START_S, took

    play(path, say_nothing, scene)


def test_it_imports_next_to_nothing() -> None:
    """None of ours, and nothing that takes longer than the interpreter itself."""
    look = f"import sys; exec(open({str(CLIENT)!r}).read(), {{'__name__': 'client'}}); print(*sys.modules)"
    words = [sys.executable, "-I", "-S", "-c", look]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    heavy = {"asyncio", "json", "logging", "subprocess", "typing", "msgspec", "agent_relay"}
    assert heavy & set(done.stdout.split()) == set()
