"""The outbox folder and all that can stand in it and happen to it: no file is lost, doubled or ignored in silence."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage, parse_headers
from agent_relay.terminal.output import outbox as module
from agent_relay.terminal.output.outbox import MAX_FILE_BYTES, SETTLED_S, Leave, Outbox, SentFile, drop, drop_message

NOTE = "TO: Bob\n\nhi"


class Post:
    """What the daemon would do: the same id is the same message. While `gate` is closed, nothing is answered."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.stored: dict[str, HeaderMessage] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.trouble: Exception | None = None

    async def send(self, message: HeaderMessage, id_: str, leave: Leave) -> SentFile:
        self.calls.append(id_)
        self.leave = leave
        await self.gate.wait()
        if self.trouble is not None:
            raise self.trouble
        self.stored.setdefault(id_, message)
        return SentFile("msg_1", 1, 0, message.await_ms)

    @property
    def bodies(self) -> list[str]:
        return [message.body for message in self.stored.values()]

    async def until_called(self, times: int = 1) -> None:
        while len(self.calls) < times:
            await asyncio.sleep(0.001)


def play(folder: Path, scene: Callable[[Outbox, Post], Awaitable[None]]) -> Post:
    async def run() -> Post:
        post = Post()
        async with asyncio.timeout(120):
            await scene(Outbox(str(folder), post.send), post)
        return post

    return asyncio.run(run())


def sweep(folder: Path) -> Post:
    return play(folder, lambda outbox, _: outbox.sweep())


def error_of(folder: Path, name: str) -> HeaderMessage:
    return parse_headers((folder / f"{name}.error").read_text("utf-8"))


# --- names --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../secret", "/etc/hostname", "a/b", "./note", "a\0b", ".hidden", "x.error", "x.failed", "x.sent", "x~"],
)
def test_a_name_leads_nowhere_else_and_to_none_of_our_own_files(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "outbox"
    (folder / "a").mkdir(parents=True)
    (folder / ".picked-").mkdir()  # where a careless join of names would lead
    for path in (
        tmp_path / "secret",
        folder / "a" / "b",
        folder / ".hidden",
        folder / "x.error",
        folder / "x.failed",
        folder / "x~",
    ):
        path.write_text(NOTE)

    async def scene(outbox: Outbox, post: Post) -> None:
        assert not await outbox.take(name)
        assert post.calls == []

    before = sorted(tmp_path.rglob("*"))
    play(folder, scene)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["n" * 255, "ü" * 127, "n" * 201, os.fsdecode(b"caf\xe9"), "->relay:Bob hi", "a\nb", "-rf", "ünï", "a b"]
)
def test_any_name_that_a_file_can_have_is_sent_and_answered(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(NOTE)
    assert sweep(tmp_path).bodies == ["hi"]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_text("no header")
    assert sweep(tmp_path).calls == []
    kept, answer = sorted(tmp_path.iterdir(), key=lambda path: path.name.endswith(".error"))
    assert kept.name.endswith(".failed")
    assert kept.read_text() == "no header"
    assert parse_headers(answer.read_text("utf-8")).code == "INVALID_HEADER"


def test_two_long_names_do_not_become_one(tmp_path: Path) -> None:
    for end in "ab":
        (tmp_path / ("n" * 254 + end)).write_text(f"no header {end}")
    sweep(tmp_path)
    assert len(list(tmp_path.glob("*.failed"))) == len(list(tmp_path.glob("*.error"))) == 2


# --- what is no plain text file -----------------------------------------------------------------------------------------


def test_only_plain_files_are_messages(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text(NOTE)
    (tmp_path / "link").symlink_to(tmp_path / "secret" / "key")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
    odd = ["link", "dangling", "fifo", "socket", "secret"]
    before = sorted(tmp_path.iterdir())
    assert sweep(tmp_path).calls == []
    assert sorted(tmp_path.iterdir()) == before  # nobody asked for them

    async def scene(outbox: Outbox, post: Post) -> None:
        assert all([await outbox.take(name) for name in odd])  # the agent did
        assert post.calls == []

    play(tmp_path, scene)
    assert {name: error_of(tmp_path, name).code for name in odd} == dict.fromkeys(odd, "INVALID_FORMAT")
    assert (tmp_path / "secret.failed" / "key").read_text() == NOTE


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.write(b"TO: Bob\n\n")
        file.truncate(1 << 40)
    (tmp_path / "exact").write_bytes(b"TO: Bob\n\n" + b"x" * (MAX_FILE_BYTES - 9))
    assert [len(body) for body in sweep(tmp_path).bodies] == [MAX_FILE_BYTES - 9]
    assert error_of(tmp_path, "huge").code == "MESSAGE_TOO_LARGE"


def test_a_file_that_cannot_be_read_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def fail(path: str, flags: int, mode: int = 0o777) -> int:
        if ".picked-" in path:
            raise OSError(errno.EIO, "Input/output error")
        return real(path, flags, mode)

    (tmp_path / "note").write_text(NOTE)
    monkeypatch.setattr(os, "open", fail)
    assert sweep(tmp_path).calls == []
    assert "Input/output error" in error_of(tmp_path, "note").body


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=100).map(lambda data: b"TO: Bob\n\n" + data)))
@settings(max_examples=50, deadline=None)
def test_every_file_is_either_sent_or_answered(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        drop(name, "send-0123456789-01234567", "")  # complete by its name, so that nothing is waited for
        (folder / "send-0123456789-01234567").write_bytes(data)
        post = sweep(folder)
        left = sorted(path.name.rpartition(".")[2] for path in folder.iterdir())
        assert left == (["sent"] if post.stored else ["error", "failed"])


# --- while it is written ------------------------------------------------------------------------------------------------


class Clock:
    """Turned by hand; `asked` counts how often somebody looked."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked = 0

    def monotonic(self) -> float:
        self.asked += 1
        return self.now

    async def until_asked(self) -> None:
        before = self.asked
        while self.asked == before:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("name", ["slow", "send-report", "send-1-x"])
@pytest.mark.parametrize("shift_s", [0, -3600, 3600])
def test_a_file_that_grows_is_waited_for_whatever_its_own_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shift_s: int
) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    path = tmp_path / name

    async def scene(outbox: Outbox, post: Post) -> None:
        path.write_text("TO: Bob\n\n")
        sweeping = asyncio.create_task(outbox.sweep())
        for number in range(4):
            await clock.until_asked()
            clock.now += SETTLED_S * 0.9
            with path.open("a") as file:
                file.write(f"{number} ")
            facts = path.stat()
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + shift_s * 1_000_000_000))
            await clock.until_asked()
            assert post.calls == []
        clock.now += SETTLED_S * 1.1
        await sweeping

    assert play(tmp_path, scene).bodies == ["0 1 2 3 "]


def test_one_that_appeared_whole_goes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLED_S", 3600.0)
    drop_message(str(tmp_path), "send-1700000000000000000-0123abcd", HeaderMessage(to=("Bob",), body="hi"))
    assert sweep(tmp_path).bodies == ["hi"]


def test_what_cannot_be_moved_is_not_tried_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "note").write_text(NOTE)

    async def scene(outbox: Outbox, post: Post) -> None:
        await outbox.sweep()
        (tmp_path / "note").write_text(NOTE)  # the same name again, in a folder that has become read-only

        def fail(*_: str) -> None:
            raise PermissionError(errno.EACCES, "Permission denied")

        with monkeypatch.context() as broken:
            broken.setattr(os, "rename", fail)
            await outbox.sweep()
        assert len(post.stored) == 1
        await outbox.sweep()
        assert len(post.stored) == 2

    play(tmp_path, scene)


# --- wrappers that die, and several of them -----------------------------------------------------------------------------

DIES = """
import asyncio, sys
from agent_relay.terminal.output.outbox import Outbox

async def send(message, id_, leave):
    print(id_, flush=True)
    await asyncio.sleep(3600)

asyncio.run(Outbox(sys.argv[1], send).sweep())
"""


def test_killed_between_the_picking_and_the_sending_it_is_sent_with_the_same_id(tmp_path: Path) -> None:
    (tmp_path / "note").write_text(NOTE)
    ids = []
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", DIES, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            ids.append(process.stdout.readline().strip())
            process.kill()
            assert process.wait() == -signal.SIGKILL
    (tmp_path / "note").write_text("TO: Bob\n\nanother of the same name")
    post = sweep(tmp_path)
    assert post.bodies == ["hi", "another of the same name"]
    assert {post.calls[0]} == set(ids)
    assert post.calls[1] not in ids
    assert list(tmp_path.iterdir()) == []


def test_a_sending_that_was_called_off_is_taken_up_by_the_next_sweep(tmp_path: Path) -> None:
    (tmp_path / "note").write_text(NOTE)

    async def scene(outbox: Outbox, post: Post) -> None:
        post.gate.clear()
        taking = asyncio.create_task(outbox.take("note"))
        await post.until_called()
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        post.gate.set()
        await outbox.sweep()
        assert len(post.calls) == 2

    assert play(tmp_path, scene).bodies == ["hi"]


def test_two_wrappers_at_once_send_every_file_once(tmp_path: Path) -> None:
    wanted = [str(number) for number in range(60)]
    for body in wanted:
        (tmp_path / body).write_text(f"TO: Bob\n\n{body}")

    async def scene(outbox: Outbox, post: Post) -> None:
        others = [Outbox(str(tmp_path), post.send) for _ in range(2)]
        await asyncio.gather(outbox.sweep(), *(other.sweep() for other in others))

    post = play(tmp_path, scene)
    assert sorted(post.bodies, key=int) == wanted
    assert len(post.calls) == 60
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_wrapper_that_comes_while_another_is_sending_does_it_no_harm(tmp_path: Path, is_refused: bool) -> None:
    (tmp_path / "note").write_text(NOTE)

    async def scene(outbox: Outbox, post: Post) -> None:
        post.gate.clear()
        first = asyncio.create_task(outbox.take("note"))
        await post.until_called()
        second = asyncio.create_task(Outbox(str(tmp_path), post.send).sweep())
        await post.until_called(2)
        post.trouble = RelayError(ErrorCode.AGENT_NOT_FOUND, "No agent Bob.") if is_refused else None
        post.gate.set()
        assert await first
        await second
        assert len(set(post.calls)) == 1

    play(tmp_path, scene)
    assert sorted(path.name for path in tmp_path.iterdir()) == (["note.error", "note.failed"] if is_refused else [])


# --- when something breaks ----------------------------------------------------------------------------------------------


@contextmanager
def full_disk() -> Iterator[None]:
    """Not a byte more can be written to any file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_on_a_full_disk_messages_are_still_sent_and_nothing_half_written_is_left(tmp_path: Path) -> None:
    (tmp_path / "send-1").write_text(NOTE)
    (tmp_path / "bad").write_text("no header")
    with full_disk():
        post = sweep(tmp_path)
        with pytest.raises(OSError):
            drop(str(tmp_path), "send-2", NOTE)
    assert post.bodies == ["hi"]
    assert [path.name for path in tmp_path.iterdir()] == ["bad.failed"]


def test_what_nobody_foresaw_is_answered_and_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "one").write_text(NOTE)
    (tmp_path / "one.failed").mkdir()  # even with something in the way
    (tmp_path / "one.failed" / "x").touch()

    async def scene(outbox: Outbox, post: Post) -> None:
        post.trouble = ValueError("secret")
        await outbox.sweep()
        post.trouble = None
        (tmp_path / "two").write_text(NOTE)
        await outbox.sweep()

    assert play(tmp_path, scene).bodies == ["hi"]
    answer = error_of(tmp_path, "one")
    assert (answer.code, "secret" in answer.body) == ("INTERNAL_ERROR", False)
    assert [path.read_text() for path in tmp_path.glob("one-*.failed")] == [NOTE]


def test_a_question_says_so_in_its_receipt(tmp_path: Path) -> None:
    drop_message(str(tmp_path), "send-1", HeaderMessage(to=("Bob",), body="why?", await_ms=30_000))
    drop_message(str(tmp_path), "send-2", HeaderMessage(to=("Bob",), body="so."))
    post = sweep(tmp_path)
    assert [message.await_ms for message in post.stored.values()] == [30_000, None]
    assert json.loads((tmp_path / "send-1.sent").read_text())["await_ms"] == 30_000
    assert "await_ms" not in json.loads((tmp_path / "send-2.sent").read_text())


def test_what_comes_later_is_left_for_whoever_waits_for_it(tmp_path: Path) -> None:
    drop_message(str(tmp_path), "send-1", HeaderMessage(to=("Bob",), body="why?", await_ms=30_000))
    post = sweep(tmp_path)
    assert not post.leave({"by": "Bob"}), "nobody has said that they wait"
    with (tmp_path / "send-1.waiting").open("w") as waiting:
        fcntl.flock(waiting, fcntl.LOCK_EX)
        assert post.leave({"by": "Bob"})
    assert json.loads((tmp_path / "send-1.reply").read_text()) == {"by": "Bob"}
    assert not post.leave({"by": "Bob"}), "whoever waited has gone"
    assert sweep(tmp_path).calls == [], "neither file is a message"


def test_for_a_file_of_an_agent_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "note").write_text(NOTE)
    post = sweep(tmp_path)
    with (tmp_path / "note.waiting").open("w") as waiting:
        fcntl.flock(waiting, fcntl.LOCK_EX)
        assert not post.leave({"by": "Bob"})


# --- every file once, bad ones answered, nothing taken half written ----------------------------------------------------


class PlainPost:
    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.refusal: RelayError | None = None

    async def send(self, message: HeaderMessage, id_: str, leave: Leave) -> SentFile:
        self.ids.append(id_)
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        self.sent.append((",".join(message.to), message.body))
        return SentFile("msg_1", 1, 0)


def play_plainly(folder: Path, scene: Callable[[Outbox, PlainPost], Awaitable[None]]) -> PlainPost:
    post = PlainPost()

    async def run() -> None:
        async with asyncio.timeout(120):
            await scene(Outbox(str(folder), post.send), post)

    asyncio.run(run())
    return post


def test_the_oldest_goes_first_and_nothing_is_left(tmp_path: Path) -> None:
    for age, name in enumerate(("c", "b", "a")):
        (tmp_path / name).write_text(f"TO: Bob\n\n{name}\n")
        os.utime(tmp_path / name, (100 + age, 100 + age))
    post = play_plainly(tmp_path, lambda outbox, _: outbox.sweep())
    assert post.sent == [("Bob", "c"), ("Bob", "b"), ("Bob", "a")]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_named_is_taken_at_once_and_once(tmp_path: Path) -> None:
    async def scene(outbox: Outbox, post: PlainPost) -> None:
        drop(str(tmp_path), "note", "TO: Bob\n\nhi")
        taken = await asyncio.gather(*(outbox.take("note") for _ in range(5)), outbox.sweep())
        assert taken[:5] == [True] * 5
        assert not await outbox.take("other")
        assert not await outbox.take("../other")

    assert play_plainly(tmp_path, scene).sent == [("Bob", "hi")]


def test_what_cannot_be_sent_is_answered_and_kept(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("TO: Eve\n\nkey")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    bad = {
        "head": b"no header",
        "to": b"THREAD: x\n\ny",
        "bytes": b"TO: Bob\n\n\xff",
        "long": b"TO: Bob\n\n" + b"x" * MAX_FILE_BYTES,
    }
    for name, data in bad.items():
        (tmp_path / name).write_bytes(data)

    async def scene(outbox: Outbox, post: PlainPost) -> None:
        for name in (*bad, "link"):
            assert await outbox.take(name)
        post.refusal = RelayError(ErrorCode.AGENT_NOT_FOUND, "No agent Eve.")
        assert await outbox.take("secret")

    post = play_plainly(tmp_path, scene)
    assert post.sent == []
    answers = {path.stem: parse_headers(path.read_text()).code for path in tmp_path.glob("*.error")}
    assert answers == {
        "head": "INVALID_HEADER", "to": "MISSING_HEADER", "bytes": "INVALID_FORMAT", "long": "MESSAGE_TOO_LARGE",
        "link": "INVALID_FORMAT", "secret": "AGENT_NOT_FOUND",
    }  # fmt: skip
    assert (tmp_path / "head.failed").read_bytes() == b"no header"


def test_answers_and_hidden_files_are_no_messages(tmp_path: Path) -> None:
    for name in (".hidden", "x.error", "x.failed", "x.sent", "x.tmp", "x~", "x.swp"):
        (tmp_path / name).write_text("TO: Bob\n\nhi")
    (tmp_path / "folder").mkdir()
    assert play_plainly(tmp_path, lambda outbox, _: outbox.sweep()).sent == []


def test_who_asks_for_a_receipt_gets_one(tmp_path: Path) -> None:
    drop_message(str(tmp_path), "send-1", HeaderMessage(to=("Bob",), body="hi"))
    play_plainly(tmp_path, lambda outbox, _: outbox.sweep())
    assert json.loads((tmp_path / "send-1.sent").read_text()) == {"message_id": "msg_1", "recipients": 1, "queued": 0}


def test_what_a_dead_wrapper_had_picked_up_is_sent_with_the_same_id(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("TO: Bob\n\nhi")

    async def dies(outbox: Outbox, post: PlainPost) -> None:
        sending = asyncio.create_task(outbox.take("note"))
        while not post.ids:
            await asyncio.sleep(0)
        sending.cancel()  # in the middle of the sending: the daemon may have the message or not

    first = play_plainly(tmp_path, dies)
    assert [path.name[:8] for path in tmp_path.iterdir()] == [".picked-"]
    second = play_plainly(tmp_path, lambda outbox, _: outbox.sweep())
    assert (second.sent, second.ids) == ([("Bob", "hi")], first.ids)


def test_the_folder_is_watched_until_told(tmp_path: Path) -> None:
    async def scene(outbox: Outbox, post: PlainPost) -> None:
        stop = asyncio.Event()
        watching = asyncio.create_task(outbox.watch(stop))
        (tmp_path / "one").write_text("TO: Bob\n\n1")
        deadline = time.monotonic() + 10
        while not post.sent and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        drop(str(tmp_path), "two", "TO: Bob\n\n2")
        while len(post.sent) < 2 and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        stop.set()
        await watching

    assert play_plainly(tmp_path, scene).sent == [("Bob", "1"), ("Bob", "2")]


def test_what_is_written_is_for_the_user_alone(tmp_path: Path) -> None:
    drop(str(tmp_path), "x", "y")
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
