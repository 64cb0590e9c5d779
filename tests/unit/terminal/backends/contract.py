"""One body of tests for every backend: `class TestX(TerminalContract)` with `make`."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.backends.terminal import Key, ProgramMissing, Terminal, TerminalEnded, TerminalError
from agent_relay.terminal.screen.contents import Screen
from tests.unit.terminal.backends.recorder import (
    ENVIRONMENT,
    KEEP_BYTES,
    Recorder,
    ScriptedFiles,
    eventually,
    eventually_async,
    is_alive,
    python,
)

HOSTILE = [
    "", " ", "a b", "'", '"', "it's \"so\"", ";", "x;", "x\\;", "x\\\\;", ";;", "\\", "$(touch pwned)", "`touch pwned`", "$HOME",
    "two\nlines", "tab\there", "-x", "--", "-", "#{pid}", "#(touch pwned)", "##", "%0", "%1", "~",
    "~root", "{", "}", "*", "é🙂", "\x01\x1b",
]  # fmt: skip
TELL = (
    "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ), os.isatty(0)]))"
)


class TerminalContract:
    run_loop: Any = staticmethod(asyncio.run)

    def make(self, recorder: Recorder, name: str = "Bob") -> Terminal[Screen]:
        raise NotImplementedError

    @asynccontextmanager
    async def running(self, argv: list[str], folder: Path, **size: int) -> AsyncIterator[tuple[Terminal[Screen], Recorder]]:
        recorder = Recorder()
        terminal = self.make(recorder)
        await terminal.start(argv, cwd=str(folder), environment=ENVIRONMENT, **size)
        try:
            yield terminal, recorder
        finally:
            await terminal.stop(0.2)

    def play(self, scene: Callable[[], Awaitable[None]]) -> None:
        async def within() -> None:
            async with asyncio.timeout(90):
                await scene()

        self.run_loop(within())

    # --- starting ----------------------------------------------------------------------------------------------------

    def test_arguments_folder_and_environment_arrive_as_they_are(self, tmp_path: Path) -> None:
        folder = tmp_path / "#(touch pwned) #{pid} $(touch pwned);"
        folder.mkdir()
        said = tmp_path / "said.json"
        environment = {**ENVIRONMENT, "ODD": "a;b #{pid} $(x)\n'\"", "TOKEN": "secret", "EMPTY": ""}

        async def scene() -> None:
            terminal = self.make(Recorder())
            argv = python(TELL, str(said), *HOSTILE)
            await terminal.start(argv, cwd=str(folder), environment=environment)
            status = await terminal.wait()
            await terminal.stop(0)
            assert status.code == 0

        self.play(scene)
        arguments, cwd, environ, is_terminal = json.loads(said.read_text())
        assert arguments == HOSTILE
        assert cwd == str(folder)
        assert {name: environ.get(name) for name in environment} == environment
        assert is_terminal
        assert list(folder.iterdir()) == []
        assert not (Path.cwd() / "pwned").exists()

    def test_nothing_of_our_own_environment_gets_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AGENT_RELAY_TOKEN", "of the wrapper")
        said = tmp_path / "said.json"

        async def scene() -> None:
            async with self.running(python(TELL, str(said)), tmp_path) as (terminal, _):
                await terminal.wait()

        self.play(scene)
        environ = json.loads(said.read_text())[2]
        assert "AGENT_RELAY_TOKEN" not in environ
        assert environ["TERM"].endswith("256color")

    def test_a_program_may_be_a_single_word_with_spaces(self, tmp_path: Path) -> None:
        program = tmp_path / "my program; touch pwned"
        program.write_text("#!/bin/sh\nexit 9\n")
        program.chmod(0o755)

        async def scene() -> None:
            async with self.running([str(program)], tmp_path) as (terminal, _):
                assert (await terminal.wait()).code == 9

        self.play(scene)
        assert [path.name for path in tmp_path.iterdir()] == [program.name]

    def test_what_cannot_be_run_is_said_before(self, tmp_path: Path) -> None:
        async def scene() -> None:
            terminal = self.make(Recorder())
            with pytest.raises(ProgramMissing, match="no-such-cli"):
                await terminal.start(["no-such-cli"], cwd="/", environment=ENVIRONMENT)
            with pytest.raises(TerminalError, match="gone"):
                await terminal.start(["true"], cwd=str(tmp_path / "gone"), environment=ENVIRONMENT)
            with pytest.raises(TerminalError, match="no program"):
                await terminal.start([], cwd="/", environment=ENVIRONMENT)
            with pytest.raises(TerminalError, match="NUL"):
                await terminal.start(["true", "a\0b"], cwd="/", environment=ENVIRONMENT)
            with pytest.raises(TerminalEnded):
                await terminal.press(Key.ENTER)

        self.play(scene)

    # --- output ------------------------------------------------------------------------------------------------------

    def test_everything_written_is_pushed_from_the_first_byte_to_the_last(self, tmp_path: Path) -> None:
        code = (
            "import os\nos.write(1, b'FIRST ' + bytes(range(32, 256)))\n"
            "for n in range(20000): os.write(1, b'%d,' % n)\nos.write(1, b' LAST')"
        )

        async def scene() -> None:
            async with self.running(python(code), tmp_path) as (terminal, recorder):
                await terminal.wait()
                expected = b"FIRST " + bytes(range(32, 256)) + b"".join(b"%d," % n for n in range(20000)) + b" LAST"
                assert bytes(recorder.data) == expected

        self.play(scene)

    def test_a_flood_leaves_the_loop_alive(self, tmp_path: Path) -> None:
        async def scene() -> None:
            async with self.running(["yes", "flood " * 20], tmp_path) as (terminal, recorder):
                await recorder.until(b"flood")
                # In time of our own processor: how long others keep it from us is not the flood's doing.
                beats, longest, last = 0, 0.0, time.thread_time()
                start = time.monotonic()
                while time.monotonic() - start < 1.5 or beats < 5:
                    await asyncio.sleep(0.001)
                    now = time.thread_time()
                    beats, longest, last = beats + 1, max(longest, now - last), now
                assert longest < 0.5
                assert len(recorder.data) > 100_000
                await terminal.interrupt()
                assert (await terminal.wait()).signal == signal.SIGINT
                screen = await terminal.screen()
                assert any("flood flood" in line.text for line in screen.visible)

        self.play(scene)

    # --- input -------------------------------------------------------------------------------------------------------

    def test_every_byte_can_be_written(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept"
        data = bytes(range(256)) * 8 + b"\x04"

        async def scene() -> None:
            async with self.running(python(KEEP_BYTES, str(kept), ""), tmp_path) as (terminal, recorder):
                await recorder.until(b"ready")
                await terminal.write(data)
                await terminal.wait()

        self.play(scene)
        assert kept.read_bytes() == data

    @pytest.mark.parametrize(("mode", "start", "end"), [("\x1b[?2004h", b"\x1b[200~", b"\x1b[201~"), ("", b"", b"")])
    def test_a_paste_arrives_once_and_cannot_be_left(self, tmp_path: Path, mode: str, start: bytes, end: bytes) -> None:
        kept = tmp_path / "kept"
        text = "two\nlines\twith é🙂 ; $(x) #{pid}\x1b[201~\r\nrm -rf\x03\x9b201~\x00 end"

        async def scene() -> None:
            async with self.running(python(KEEP_BYTES, str(kept), mode), tmp_path) as (terminal, recorder):
                await recorder.until(b"ready")
                assert terminal.takes_paste is bool(mode)
                await terminal.paste(text)
                await terminal.paste("")
                await terminal.press(Key.ENTER)
                await terminal.press(Key.CTRL_D)
                await terminal.wait()

        self.play(scene)
        clean = "two\rlines\twith é🙂 ; $(x) #{pid}\ufffd[201~\rrm -rf\ufffd\ufffd201~\ufffd end".encode()
        assert kept.read_bytes() == start + clean + end + b"\r\x04"

    def test_a_long_paste_into_a_slow_program_arrives_whole_and_blocks_nobody(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept"
        slow = KEEP_BYTES.replace("os.read(0, 65536)", "os.read(0, 512)").replace("import os", "import time, os", 1)
        slow = slow.replace("        file.write(data)", "        time.sleep(0.001); file.write(data)")
        text = "".join(f"{number} " for number in range(40_000))

        async def scene() -> None:
            async with self.running(python(slow, str(kept), ""), tmp_path) as (terminal, recorder):
                await recorder.until(b"ready")
                pasting = asyncio.create_task(terminal.paste(text))
                beats = 0
                while not pasting.done():
                    await asyncio.sleep(0.001)
                    beats += 1
                await pasting
                await terminal.press(Key.CTRL_D)
                await terminal.wait()
                assert beats

        self.play(scene)
        assert kept.read_bytes() == text.encode() + b"\x04"

    def test_keys_are_what_a_terminal_sends(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept"

        async def scene() -> None:
            async with self.running(python(KEEP_BYTES, str(kept), ""), tmp_path) as (terminal, recorder):
                await recorder.until(b"ready")
                for key in (Key.TAB, Key.ESCAPE, Key.UP, Key.LEFT, Key.SPACE, Key.BACKSPACE, Key.CTRL_C, Key.CTRL_U, Key.CTRL_D):
                    await terminal.press(key)
                await terminal.wait()

        self.play(scene)
        assert kept.read_bytes() == b"\t\x1b\x1b[A\x1b[D \x7f\x03\x15\x04"

    def test_arrows_follow_the_mode_of_the_program(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept"

        async def scene() -> None:
            async with self.running(python(KEEP_BYTES, str(kept), "\x1b[?1h"), tmp_path) as (terminal, recorder):
                await recorder.until(b"ready")
                await terminal.press(Key.DOWN)
                await terminal.press(Key.CTRL_D)
                await terminal.wait()

        self.play(scene)
        assert kept.read_bytes() == b"\x1bOB\x04"

    def test_what_has_ended_takes_nothing(self, tmp_path: Path) -> None:
        async def scene() -> None:
            async with self.running(["true"], tmp_path) as (terminal, _):
                await terminal.wait()
                for attempt in (terminal.write(b"x"), terminal.paste("x"), terminal.press(Key.ENTER), terminal.resize(80, 24)):
                    with pytest.raises(TerminalEnded):
                        await attempt

        self.play(scene)

    # --- the screen --------------------------------------------------------------------------------------------------

    def test_positions_go_on_as_lines_scroll_off(self, tmp_path: Path) -> None:
        code = (
            "import sys\nn = 0\nprint('(0)', end='', flush=True)\nfor line in sys.stdin:\n"
            "  for _ in range(int(line)): print('line', n); n += 1\n  print('(%d)' % n, end='', flush=True)"
        )

        async def scene() -> None:
            argv = ["sh", "-c", 'stty -echo; exec "$@"', "sh", *python(code)]
            async with self.running(argv, tmp_path, columns=40, rows=10) as (terminal, recorder):
                seen: dict[int, str] = {}
                total = 0
                await recorder.until(b"(0)")
                for count in (5, 30, 500, 1, 12):
                    total += count
                    await terminal.write(b"%d\n" % count)
                    await recorder.until(b"(%d)" % total)
                    screen = await terminal.screen()
                    numbers = [line.position for line in screen.lines]
                    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
                    assert screen.first_visible == max(0, total + 1 - 10)
                    assert len(screen.visible) == 10
                    assert screen.cursor is not None
                    assert screen.cursor.position == total
                    seen |= {line.position: line.text for line in screen.lines if "line" in line.text}
                # Every line was told, each at its own position; the first of a batch follows the mark of the one before.
                assert sorted(seen) == list(range(total))
                assert all(text.endswith(f"line {position}") for position, text in seen.items())

        self.play(scene)

    def test_a_line_that_scrolled_off_is_told_once(self, tmp_path: Path) -> None:
        async def scene() -> None:
            argv = ["sh", "-c", "seq 100; echo done; exec cat"]
            async with self.running(argv, tmp_path, columns=40, rows=10) as (terminal, recorder):
                await recorder.until(b"done")
                first = await terminal.screen()
                second = await terminal.screen()
                assert len(first.lines) == 102
                assert [line.text for line in first.lines[:3]] == ["1", "2", "3"]
                assert len(second.lines) == 10
                assert second.lines == second.visible

        self.play(scene)

    def test_long_lines_scroll_the_screen_too(self, tmp_path: Path) -> None:
        async def scene() -> None:
            argv = ["sh", "-c", "printf '%01000d' 7; printf END; exec cat"]
            async with self.running(argv, tmp_path, columns=10, rows=5) as (terminal, recorder):
                await recorder.until(b"END")
                screen = await terminal.screen()
                assert "".join(line.text for line in screen.lines) == f"{7:01000d}END"

        self.play(scene)

    def test_title_alternate_screen_and_colours(self, tmp_path: Path) -> None:
        draw = "\\033]0;my title; ok\\007\\033[?1049h\\033[H\\033[31mred\\033[0m \\033[48;5;100mbox\\033[m "
        draw += "\\033[38;2;1;2;3mrgb\\033[m 漢x\\033[91m!"

        async def scene() -> None:
            async with self.running(["sh", "-c", f"printf '{draw}'; exec cat"], tmp_path) as (terminal, recorder):
                await recorder.until(b"!")
                screen = await terminal.screen()
                assert (screen.title, screen.is_alternate, screen.columns) == ("my title; ok", True, 120)
                line = screen.visible[0]
                assert line.text == "red box rgb 漢x!"
                assert line.ink_at is not None
                inks = [tuple(line.ink_at(column)) for column in (0, 3, 4, 8, 14, 15, 60)]
                assert inks == [
                    ("red", "default"),
                    ("default", "default"),
                    ("default", "878700"),
                    ("010203", "default"),
                    ("default", "default"),
                    ("brightred", "default"),
                    ("default", "default"),
                ]

        self.play(scene)

    def test_a_cleared_history_does_not_turn_positions_back(self, tmp_path: Path) -> None:
        async def scene() -> None:
            argv = ["sh", "-c", "seq 50; printf ONE; read x; printf '\\033[H\\033[2J\\033[3J'; seq 51 120; printf TWO; exec cat"]
            async with self.running(argv, tmp_path, columns=40, rows=10) as (terminal, recorder):
                await recorder.until(b"ONE")
                before = await terminal.screen()
                await terminal.write(b"\n")
                await recorder.until(b"TWO")
                after = await terminal.screen()
                assert after.lines[0].position >= before.first_visible
                texts = [line.text for line in after.lines]
                assert [text for text in texts if text][:2] == ["51", "52"]
                assert texts.count("120") == 1

        self.play(scene)

    def test_a_new_size_reaches_the_program(self, tmp_path: Path) -> None:
        code = (
            "import os, signal, time\n"
            "def told(*_): s = os.get_terminal_size(); os.write(1, b'<%dx%d>' % s)\n"
            "signal.signal(signal.SIGWINCH, told)\ntold()\n"
            "while True: signal.pause()"
        )

        async def scene() -> None:
            async with self.running(python(code), tmp_path, columns=100, rows=30) as (terminal, recorder):
                await recorder.until(b"<100x30>")
                await terminal.resize(70, 20)
                await recorder.until(b"<70x20>")
                screen = await terminal.screen()
                assert (screen.columns, len(screen.visible)) == (70, 20)

        self.play(scene)

    def test_questions_to_the_terminal_are_answered(self, tmp_path: Path) -> None:
        kept = tmp_path / "kept"

        async def scene() -> None:
            async with self.running(python(KEEP_BYTES, str(kept), "\x1b[3;7H\x1b[6n\x1b[c"), tmp_path) as (terminal, recorder):
                await recorder.until(b"ready")
                await eventually(lambda: b"c" in kept.read_bytes())
                await terminal.press(Key.CTRL_D)
                await terminal.wait()

        self.play(scene)
        assert kept.read_bytes().startswith(b"\x1b[3;7R\x1b[?")

    # --- the end -----------------------------------------------------------------------------------------------------

    def test_the_exit_status_is_exact(self, tmp_path: Path) -> None:
        cases = [
            ("exit 0", 0, None),
            ("exit 3", 3, None),
            ("exit 255", 255, None),
            ("kill -9 $$", 137, 9),
            ("kill -TERM $$", 143, 15),
        ]
        cases += [("sleep 0.05; exit 4", 4, None), ("sleep 1000 & exit 5", 5, None)] * 2

        async def scene() -> None:
            for command, code, number in cases:
                async with self.running(["sh", "-c", command], tmp_path) as (terminal, _):
                    status = await terminal.wait()
                    assert (status.code, status.signal) == (code, number), command

        self.play(scene)

    def test_interrupt_is_a_ctrl_c(self, tmp_path: Path) -> None:
        async def scene() -> None:
            async with self.running(["sh", "-c", "echo up; exec sleep 1000"], tmp_path) as (terminal, recorder):
                await recorder.until(b"up")
                await terminal.interrupt()
                assert (await terminal.wait()).code == 130

        self.play(scene)

    def test_stop_leaves_nobody_behind(self, tmp_path: Path) -> None:
        pids = tmp_path / "pids"
        # One that ignores everything it can, a child in its group, and one in a group of its own.
        code = (
            "import os, signal, subprocess, sys\n"
            "for s in (signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"
            "a = subprocess.Popen(['sleep', '1000'])\n"
            "b = subprocess.Popen(['sleep', '1000'], process_group=0)\n"
            "open(sys.argv[1], 'w').write(f'{os.getpid()} {a.pid} {b.pid}')\n"
            "print('up', flush=True)\nsignal.pause()"
        )

        async def scene() -> None:
            recorder = Recorder()
            terminal = self.make(recorder)
            await terminal.start(python(code, str(pids)), cwd=str(tmp_path), environment=ENVIRONMENT)
            await recorder.until(b"up")
            started = [int(pid) for pid in pids.read_text().split()]
            assert all(is_alive(pid) for pid in started)
            status = await terminal.stop(0.4)
            assert (status.code, status.signal) == (137, 9)
            assert not [pid for pid in started if is_alive(pid)]

        self.play(scene)

    def test_a_program_that_tidies_up_is_given_the_time(self, tmp_path: Path) -> None:
        async def scene() -> None:
            recorder = Recorder()
            terminal = self.make(recorder)
            argv = ["sh", "-c", "trap 'sleep 0.3; echo tidy > tidy; exit 6' TERM; echo up; while :; do sleep 0.05; done"]
            await terminal.start(argv, cwd=str(tmp_path), environment=ENVIRONMENT)
            await recorder.until(b"up")
            started = time.monotonic()
            assert (await terminal.stop(20)).code == 6
            assert time.monotonic() - started < 8
            assert (tmp_path / "tidy").exists()

        self.play(scene)

    # --- with a CLI that behaves like the real ones ----------------------------------------------------------------------

    def test_a_scripted_agent_takes_a_message_and_answers(self, tmp_path: Path) -> None:
        files = ScriptedFiles(tmp_path, turns=[{"when": r"tell (\w+)", "say": [r"->relay:\1 hello"]}], alternate=True)

        async def scene() -> None:
            async with self.running(files.argv, tmp_path) as (terminal, recorder):
                await recorder.until("› ".encode())
                await terminal.paste("Relay message from Alice:\ntell Bob")
                await files.until("pasted")
                await terminal.press(Key.ENTER)
                await files.until("submitted", text="Relay message from Alice:\ntell Bob")

                async def answered() -> Any:
                    return [line for line in (await terminal.screen()).visible if "->relay:Bob hello" in line.text]

                await eventually_async(answered)
                assert not files.bytes_in("dialog")

        self.play(scene)

    def test_a_dialog_shows_and_can_be_answered(self, tmp_path: Path) -> None:
        files = ScriptedFiles(tmp_path, start={"dialog": {"say": {"No": ["refused"]}}})

        async def scene() -> None:
            async with self.running(files.argv, tmp_path) as (terminal, recorder):
                await recorder.until(b"Do you want to proceed?")
                assert files.bytes_in("dialog") == b""
                await terminal.press(Key.DOWN)
                await recorder.until("❯ 2. No".encode())
                await terminal.press(Key.ENTER)
                await files.until("answered", option="No")
                await recorder.until(b"refused")
                assert files.bytes_in("dialog") == b"\x1b[B\r"

        self.play(scene)
