"""The tmux backend against a real tmux, each test with a server of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_relay.terminal.backends import tmux_client
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import Key, SessionExists, Terminal, TerminalEnded, TerminalError
from agent_relay.terminal.backends.tmux import ENDED_WITH_TMUX, TmuxTerminal
from agent_relay.terminal.backends.tmux_control import command_line
from agent_relay.terminal.backends.tmux_program import TmuxFailed, TmuxGone
from agent_relay.terminal.backends.tmux_server import HISTORY_LINES, TmuxServer
from agent_relay.terminal.screen.contents import Screen
from tests.unit.terminal.backends.contract import TerminalContract
from tests.unit.terminal.backends.recorder import (
    ENVIRONMENT,
    KEEP_BYTES,
    Recorder,
    eventually,
    eventually_async,
    is_alive,
    own_tmux,
    python,
)

pytestmark = pytest.mark.terminals

# In a process of its own, inside a terminal: takes up the agent and gives the terminal to it.
ATTACH = """
import asyncio, sys
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer

class Deaf:
    def output(self, data): pass
    def output_lost(self): pass
    def person_typed(self): pass

async def main():
    terminal = TmuxTerminal(TmuxServer(find_tmux(), sys.argv[1]), "Bob", Deaf())
    await terminal.reattach()
    await terminal.attach()
    await terminal.close()
    print("DETACHED")

asyncio.run(main())
"""


@pytest.fixture
def server() -> Iterator[TmuxServer]:
    with own_tmux() as server:
        yield server


_PATIENCE_S = 180.0  # for many programs in a row, on a busy machine
_started: list[TmuxTerminal | PtyTerminal] = []


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await scene()
        finally:
            while _started:
                with contextlib.suppress(TerminalEnded):
                    await _started.pop().stop(0)

    asyncio.run(within())


async def start(server: TmuxServer, argv: list[str], name: str = "Bob", **size: int) -> tuple[TmuxTerminal, Recorder]:
    recorder = Recorder()
    terminal = TmuxTerminal(server, name, recorder)
    await terminal.start(argv, cwd="/", environment=ENVIRONMENT, **size)
    _started.append(terminal)
    return terminal, recorder


class TestTmux(TerminalContract):
    @pytest.fixture(autouse=True)
    def _server(self, server: TmuxServer) -> None:
        self.server = server

    def make(self, recorder: Recorder, name: str = "Bob") -> Terminal[Screen]:
        return TmuxTerminal(self.server, name, recorder)


class TestTmuxOnUvloop(TestTmux):
    run_loop = staticmethod(uvloop.run)


# --- living on ------------------------------------------------------------------------------------------------------


def test_the_program_lives_on_and_can_be_taken_up_again(server: TmuxServer) -> None:
    async def scene() -> None:
        first, told = await start(server, ["sh", "-c", "seq 100; printf ONE; read x; seq 101 130; printf TWO; exec cat"], rows=10)
        await told.until(b"ONE")
        before = await first.screen()
        await first.close()
        recorder = Recorder()
        second = TmuxTerminal(server, "Bob", recorder)
        await second.reattach()
        again = await second.screen()
        # The same lines at the same positions, and nothing that scrolled off before is told again.
        assert [(line.position, line.text) for line in again.lines] == [(line.position, line.text) for line in before.visible]
        assert second.takes_paste is None
        await second.write(b"\n")
        await recorder.until(b"TWO")
        after = await second.screen()
        assert after.lines[0].position == before.first_visible
        assert [line.text for line in after.lines if line.text.isdigit()][-1] == "130"
        await second.stop(0.5)

    play(scene)


def test_what_ended_while_nobody_was_there_ended_with_its_own_status(server: TmuxServer, tmp_path: Path) -> None:
    async def scene() -> None:
        first, told = await start(server, ["sh", "-c", f"echo up; read x < {tmp_path}/go; echo LAST; exit 7"])
        await told.until(b"up")
        await first.close()
        (tmp_path / "go").write_text("go\n")

        async def over() -> bool:
            return "1" in await server.run(("display-message", "-p", "-t", "=Bob:", "#{@agent-relay-ended}"))

        await eventually_async(over)
        second = TmuxTerminal(server, "Bob", Recorder())
        await second.reattach()
        assert (await second.wait()).code == 7
        assert any(line.text == "LAST" for line in (await second.screen()).visible)
        await second.stop(0)

    os.mkfifo(tmp_path / "go")
    play(scene)


def test_there_is_one_program_of_a_name_and_none_is_said_so(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["cat"], "v1.2-x_y")
        with pytest.raises(SessionExists, match=r"v1\.2-x_y already runs"):
            await start(server, ["cat"], "v1.2-x_y")
        other, _ = await start(server, ["cat"], "v1-2-x_y")
        assert await server.find_pane("v1.2-x_y") != await server.find_pane("v1-2-x_y")
        assert await server.find_pane("v1") is None
        with pytest.raises(TerminalEnded, match="Nobody does not run"):
            await TmuxTerminal(server, "Nobody", Recorder()).reattach()
        await terminal.stop(0.5)
        await other.stop(0.5)

    play(scene)


def test_the_server_goes_with_its_last_program(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["cat"])
        pid = int(await server.run(("display-message", "-p", "#{pid}")))
        await terminal.stop(0.5)
        await eventually(lambda: not is_alive(pid))

    play(scene)


def test_when_tmux_goes_the_program_has_ended(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["cat"])
        await server.kill()
        assert await terminal.wait() == ENDED_WITH_TMUX
        with pytest.raises(TerminalEnded):
            await terminal.screen()
        await terminal.close()

    play(scene)


@pytest.mark.parametrize("ignored", ["", "SIGTERM SIGHUP"])
def test_one_that_watched_the_focus_takes_nobody_along(server: TmuxServer, ignored: str) -> None:
    """tmux 3.3a dies when a client leaves the pane of a program that asked for reports of the focus and is dead."""
    names = "".join(f"signal.signal(signal.{name}, signal.SIG_IGN); " for name in ignored.split())
    watching = python(f"import signal, time; {names}print('\\x1b[?1004hready', flush=True); time.sleep(1000)")

    async def scene() -> None:
        await start(server, python("import time; time.sleep(1000)"), "Other")
        terminal, recorder = await start(server, watching)
        await eventually(lambda: b"ready" in recorder.data)
        await terminal.stop(0.2)
        assert await server.find_pane("Other") is not None
        assert b"agent-relay-end" not in recorder.data

    play(scene)


def test_programs_do_not_see_each_other_s_environment(server: TmuxServer) -> None:
    async def scene() -> None:
        recorder = Recorder()
        first = TmuxTerminal(server, "A", recorder)
        await first.start(["cat"], cwd="/", environment={**ENVIRONMENT, "TOKEN": "of A", "LC_ALL": "C.UTF-8"})
        second = TmuxTerminal(server, "B", recorder)
        await second.start(["sh", "-c", "env; echo DONE; exec cat"], cwd="/", environment=ENVIRONMENT)
        await recorder.until(b"DONE")
        assert b"PATH=" in recorder.data
        assert b"TOKEN" not in recorder.data
        assert b"LC_ALL" not in recorder.data
        assert "TOKEN" not in await server.run(("show-environment", "-g"))
        await first.stop(0.5)
        await second.stop(0.5)

    play(scene)


def test_the_person_s_configuration_is_not_read(server: TmuxServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".tmux.conf").write_text(f"run-shell 'touch {tmp_path}/read'\nset -g history-limit 7\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMUX", "/nowhere/default,1,0")
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))

    async def scene() -> None:
        recorder = Recorder()
        terminal = TmuxTerminal(server, "Bob", recorder)
        await terminal.start(["cat"], cwd="/", environment={**ENVIRONMENT, "HOME": str(tmp_path)})
        assert (await server.run(("show-options", "-gv", "history-limit"))).strip() == str(HISTORY_LINES)
        await terminal.stop(0.5)

    play(scene)
    assert [path.name for path in tmp_path.iterdir()] == [".tmux.conf"]


# --- positions -------------------------------------------------------------------------------------------------------


def test_positions_outlive_a_history_that_is_full(server: TmuxServer) -> None:
    code = (
        "import sys\nn = 0\nprint('(0)', flush=True)\nfor line in sys.stdin:\n"
        "  for _ in range(int(line)): n += 1; print('line', n)\n  print('(%d)' % n, end='\\r', flush=True)"
    )

    async def scene() -> None:
        terminal, recorder = await start(server, ["sh", "-c", 'stty -echo; exec "$@"', "sh", *python(code)], columns=40, rows=10)
        await recorder.until(b"(0)")
        total, seen = 0, 0
        while total < 3 * HISTORY_LINES:
            total += 1500
            await terminal.write(b"1500\n")
            await recorder.until(b"(%d)" % total)
            for line in (await terminal.screen()).lines:
                if line.text.startswith("line"):
                    assert line.text == f"line {line.position}"
                    seen = max(seen, line.position)
            recorder.data.clear()
        assert seen == total
        await terminal.stop(0.5)

    play(scene)


def test_a_narrower_screen_keeps_the_cursor_s_line(server: TmuxServer) -> None:
    async def scene() -> None:
        argv = ["sh", "-c", "seq 30; printf '%050d\\n' 1 2 3 4; printf END; exec cat"]
        terminal, recorder = await start(server, argv, columns=60, rows=10)
        await recorder.until(b"END")
        before = await terminal.screen()
        await terminal.resize(30, 10)
        after = await terminal.screen()
        assert after.columns == 30
        assert before.cursor is not None
        assert after.cursor is not None
        assert after.cursor.position == before.cursor.position
        await terminal.stop(0.5)

    play(scene)


# --- people ----------------------------------------------------------------------------------------------------------


async def attached(server: TmuxServer, **environment: str) -> tuple[PtyTerminal, Recorder]:
    """A person's terminal, in which somebody attaches."""
    recorder = Recorder()
    person = PtyTerminal(recorder)
    argv = ["sh", "-c", 'TERM=$PERSON_TERM exec "$@"', "sh", sys.executable, "-c", ATTACH, server.socket]
    variables = {**ENVIRONMENT, "PERSON_TERM": "xterm-256color", **environment}
    await person.start(argv, cwd="/", environment=variables, columns=100, rows=30)
    _started.append(person)
    return person, recorder


@pytest.mark.parametrize(
    "environment",
    [{}, {"TMUX": "/tmp/tmux-0/default,123,0", "TMUX_PANE": "%7"}, {"PERSON_TERM": "no-such-terminal"}],
    ids=["plain", "inside a tmux", "unknown terminal"],
)
def test_a_person_attaches_types_and_detaches(server: TmuxServer, tmp_path: Path, environment: dict[str, str]) -> None:
    kept = tmp_path / "kept"

    async def scene() -> None:
        terminal, recorder = await start(server, python(KEEP_BYTES, str(kept), ""))
        await recorder.until(b"ready")
        assert not (await terminal.person()).is_attached
        person, shown = await attached(server, **environment)
        await shown.until(b"ready")

        async def is_attached() -> bool:
            return (await terminal.person()).is_attached

        await eventually_async(is_attached)
        assert (await terminal.screen()).columns == 100  # the person's size rules
        await person.write(b"hello")
        await eventually(lambda: kept.read_bytes() == b"hello")
        # tmux takes keys that come at once for a paste; not here.
        await server.run(("set-option", "-g", "assume-paste-time", "0"))
        await person.write(b"\x02")
        await eventually_async(lambda: _has_seen_the_prefix(server))
        await person.write(b"d")
        assert (await person.wait()).code == 0
        assert b"DETACHED" in shown.data
        await person.stop(0)
        assert not (await terminal.person()).is_attached
        await terminal.write(b"!")
        await eventually(lambda: kept.read_bytes() == b"hello!")
        await terminal.stop(0.5)

    play(scene)


async def _has_seen_the_prefix(server: TmuxServer) -> bool:
    return "1" in await server.run(("list-clients", "-F", "#{client_prefix}"))


def test_a_person_s_keys_are_noticed(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, recorder = await start(server, ["cat"])
        person, shown = await attached(server)
        await shown.until(b"\x1b[?1049h")

        async def typed() -> Any:
            await person.write(b"x")
            return (await terminal.person()).typed_ms_ago is not None and recorder.typed

        await eventually_async(typed)
        seen = await terminal.person()
        assert seen.typed_ms_ago is not None
        assert seen.typed_ms_ago < 3000
        await person.stop(0.5)
        await terminal.stop(0.5)

    play(scene)


def test_what_we_type_is_not_taken_for_a_person(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["cat"])
        person, shown = await attached(server)
        await shown.until(b"\x1b[?1049h")
        await terminal.write(b"x\n")
        await terminal.paste("pasted")
        await terminal.press(Key.ENTER)
        await shown.until(b"pasted")
        assert (await terminal.person()).typed_ms_ago is None
        await person.stop(0.5)
        await terminal.stop(0.5)

    play(scene)


def test_a_person_is_let_go_when_the_program_ends(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["sh", "-c", "echo up; read x; exit 3"])
        person, shown = await attached(server)
        await shown.until(b"up")
        await terminal.write(b"\n")
        assert (await terminal.wait()).code == 3
        assert (await person.wait()).code == 0
        assert b"DETACHED" in shown.data
        await person.stop(0)
        await terminal.stop(0)

    play(scene)


def test_a_person_who_scrolled_back_does_not_get_in_the_way(server: TmuxServer, tmp_path: Path) -> None:
    kept = tmp_path / "kept"

    async def scene() -> None:
        terminal, recorder = await start(server, python(KEEP_BYTES, str(kept), "\x1b[?2004h"))
        await recorder.until(b"ready")
        for typing in (terminal.paste("a\nb"), terminal.press(Key.ENTER), terminal.write(b"q")):
            await server.run(("copy-mode", "-t", "=Bob:"))
            assert (await terminal.person()).is_scrolled_back
            await typing
        await eventually(lambda: kept.read_bytes() == b"\x1b[200~a\rb\x1b[201~\rq")
        await terminal.stop(0.5)

    play(scene)


def test_without_a_terminal_there_is_nothing_to_attach(server: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["cat"])
        with open(os.devnull) as nothing:
            monkeypatch.setattr(sys, "stdin", nothing)
            with pytest.raises(TerminalError, match="needs a terminal"):
                await terminal.attach()
        await terminal.stop(0.5)

    play(scene)


# --- the line to tmux --------------------------------------------------------------------------------------------------


def test_a_listener_that_was_asleep_stops_nothing(server: TmuxServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While we do not read, tmux stops the program or drops its output; when we do again, both go on."""
    monkeypatch.setattr(tmux_client, "PAUSE_AFTER_S", 1)

    async def scene() -> None:
        over = tmp_path / "over"
        program = ["sh", "-c", f"yes | head -c 2000000; echo END; : > '{over}'; exec cat"]
        terminal, recorder = await start(server, program)
        client = terminal._client._process
        assert client is not None
        transport: Any = client._transport  # type: ignore[attr-defined]
        await recorder.until(b"y")
        transport.get_pipe_transport(1).pause_reading()
        history, since = "", time.monotonic()

        async def stands_still() -> bool:
            nonlocal history, since
            before, history = history, await server.run(("display-message", "-p", "-t", "=Bob:", "#{history_size}"))
            since = since if history == before else time.monotonic()
            return time.monotonic() - since > 1.5

        await eventually_async(stands_still)
        transport.get_pipe_transport(1).resume_reading()
        # Nobody asks tmux anything here: it has to go on by itself.
        await eventually(over.exists, lambda: f"the program stands; lost {recorder.lost}, got {len(recorder.data)} bytes")
        await eventually(lambda: b"END" in recorder.data or recorder.lost, lambda: repr(bytes(recorder.data[-300:])))
        await terminal.write(b"still here\n")
        await recorder.until(b"still here")

    play(scene)


def test_an_unknown_command_is_an_error_and_the_line_goes_on(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["cat"])
        with pytest.raises(TmuxFailed, match="unknown command"):
            await terminal._client.ask(("no-such-command",))
        with pytest.raises(TmuxGone, match="find pane"):
            await terminal._client.ask(("capture-pane", "-p", "-t", "%999"), ("list-sessions",))
        assert await terminal._client.ask(("display-message", "-p", "one"), ("display-message", "-p", "two")) == [
            (b"one",),
            (b"two",),
        ]
        await terminal.stop(0.5)

    play(scene)


words = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), min_size=1, max_size=40)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=words)
def test_every_word_reaches_tmux_as_it_is(running: TmuxServer, text: str) -> None:
    """Through the parser of tmux itself, and through its argv."""
    file = Path(running.socket).with_name("commands")
    file.write_bytes(command_line(("set-buffer", "-b", "word", "--", text)))
    show = ["source-file", str(file), ";", "show-buffer", "-b", "word"]
    done = subprocess.run([*running.base, *show], capture_output=True, check=False)
    assert (done.stderr, done.stdout) == (b"", text.encode())


@pytest.fixture
def running(server: TmuxServer) -> TmuxServer:
    """Before the first word, and once: a server that is started by one client and asked by the next may still be starting."""
    start = ["start-server", ";", "set-option", "-s", "exit-empty", "off", ";", "new-session", "-d", "-s", "x", "cat"]
    subprocess.run([*server.base, *start], capture_output=True, check=True)
    return server


def test_the_lost_signal_of_a_child_is_sent_again(server: TmuxServer) -> None:
    """tmux sometimes misses the end of a child; the status must be right every time."""

    async def scene() -> None:
        keeper, _ = await start(server, ["cat"], "Keeper")
        for number in range(25):
            terminal, _ = await start(server, python(f"import sys; sys.exit({number})"))
            assert (await terminal.wait()).code == number
            await terminal.stop(0)
        await keeper.stop(0.5)

    play(scene)


def test_a_killed_client_process_is_the_end_of_this_terminal_not_of_the_program(server: TmuxServer) -> None:
    async def scene() -> None:
        terminal, _ = await start(server, ["cat"])
        client = terminal._client._process
        assert client is not None
        os.kill(client.pid, signal.SIGKILL)
        await terminal.wait()
        await terminal.close()
        again = TmuxTerminal(server, "Bob", Recorder())
        await again.reattach()
        await again.stop(0.5)

    play(scene)
