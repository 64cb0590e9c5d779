"""The outbox folder: every file once, bad ones answered, nothing taken half written."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage, parse_headers
from agent_relay.terminal.output.outbox import MAX_FILE_BYTES, Leave, Outbox, SentFile, drop, drop_message


class Post:
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


def play(folder: Path, scene: Callable[[Outbox, Post], Awaitable[None]]) -> Post:
    post = Post()

    async def run() -> None:
        async with asyncio.timeout(20):
            await scene(Outbox(str(folder), post.send), post)

    asyncio.run(run())
    return post


def test_the_oldest_goes_first_and_nothing_is_left(tmp_path: Path) -> None:
    for age, name in enumerate(("c", "b", "a")):
        (tmp_path / name).write_text(f"TO: Bob\n\n{name}\n")
        os.utime(tmp_path / name, (100 + age, 100 + age))
    post = play(tmp_path, lambda outbox, _: outbox.sweep())
    assert post.sent == [("Bob", "c"), ("Bob", "b"), ("Bob", "a")]
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_named_is_taken_at_once_and_once(tmp_path: Path) -> None:
    async def scene(outbox: Outbox, post: Post) -> None:
        drop(str(tmp_path), "note", "TO: Bob\n\nhi")
        taken = await asyncio.gather(*(outbox.take("note") for _ in range(5)), outbox.sweep())
        assert taken[:5] == [True] * 5
        assert not await outbox.take("other")
        assert not await outbox.take("../other")

    assert play(tmp_path, scene).sent == [("Bob", "hi")]


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

    async def scene(outbox: Outbox, post: Post) -> None:
        for name in (*bad, "link"):
            assert await outbox.take(name)
        post.refusal = RelayError(ErrorCode.AGENT_NOT_FOUND, "No agent Eve.")
        assert await outbox.take("secret")

    post = play(tmp_path, scene)
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
    assert play(tmp_path, lambda outbox, _: outbox.sweep()).sent == []


def test_who_asks_for_a_receipt_gets_one(tmp_path: Path) -> None:
    drop_message(str(tmp_path), "send-1", HeaderMessage(to=("Bob",), body="hi"))
    play(tmp_path, lambda outbox, _: outbox.sweep())
    assert json.loads((tmp_path / "send-1.sent").read_text()) == {"message_id": "msg_1", "recipients": 1, "queued": 0}


def test_what_a_dead_wrapper_had_picked_up_is_sent_with_the_same_id(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("TO: Bob\n\nhi")

    async def dies(outbox: Outbox, post: Post) -> None:
        sending = asyncio.create_task(outbox.take("note"))
        while not post.ids:
            await asyncio.sleep(0)
        sending.cancel()  # in the middle of the sending: the daemon may have the message or not

    first = play(tmp_path, dies)
    assert [path.name[:8] for path in tmp_path.iterdir()] == [".picked-"]
    second = play(tmp_path, lambda outbox, _: outbox.sweep())
    assert (second.sent, second.ids) == ([("Bob", "hi")], first.ids)


def test_the_folder_is_watched_until_told(tmp_path: Path) -> None:
    async def scene(outbox: Outbox, post: Post) -> None:
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

    assert play(tmp_path, scene).sent == [("Bob", "1"), ("Bob", "2")]


def test_what_is_written_is_for_the_user_alone(tmp_path: Path) -> None:
    drop(str(tmp_path), "x", "y")
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
