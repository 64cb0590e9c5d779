"""The files of wrappers: what is too old goes, what is new stays, and a wrapper that writes meanwhile loses nothing."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.storage.agent_files import AgentFiles
from agent_relay.terminal.delivery.inbox_file import InboxFile
from agent_relay.terminal.delivery.message_text import ShownMessage
from agent_relay.terminal.files.private_files import append_private

NOW_MS = time.time_ns() // 1_000_000
DAY_MS = 86_400_000
BEFORE_MS = NOW_MS - 30 * DAY_MS


def entry(at_ms: int, words: str) -> str:
    moment = datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"## {moment} UTC  from Alice  [x]\n\n`agent-relay read x`\n\n> {words}\n> ## 2031-01-01 00:00:00 UTC  from Nobody\n\n"


def make(path: Path, content: str, days_old: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    moment = (NOW_MS - days_old * DAY_MS) / 1_000
    os.utime(path, (moment, moment))
    return path


@pytest.fixture
def team(tmp_path: Path) -> Path:
    return tmp_path / "team" / "Bob"


def sweep(folder: Path) -> None:
    AgentFiles(str(folder)).sweep(BEFORE_MS, NOW_MS)


def test_entries_of_an_inbox_go_when_they_are_too_old_whatever_they_quote(team: Path, tmp_path: Path) -> None:
    written = [entry(NOW_MS - days * DAY_MS, f"{days} days") for days in (60, 31, 29, 1)]
    inbox = make(team / "inbox.md", "".join(written))
    sweep(tmp_path)
    assert inbox.read_text() == "".join(written[2:])
    assert inbox.stat().st_mode & 0o777 == 0o600
    before = inbox.stat()
    sweep(tmp_path)
    assert inbox.stat().st_ino == before.st_ino, "where nothing is too old nothing is written"


def test_what_an_inbox_really_holds_is_understood(team: Path, tmp_path: Path) -> None:
    inbox = InboxFile(str(team))
    inbox.add(ShownMessage("msg_1", "Alice", "words"))
    inbox.note(ShownMessage("msg_1", "Alice", "words"), "taken")
    content = Path(inbox.path).read_text()
    sweep_all = AgentFiles(str(tmp_path))
    sweep_all.sweep(0, 1)
    assert Path(inbox.path).read_text() == content
    (team / "screen.lock").write_text("")
    with (team / "screen.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its wrapper runs, so the folder stays
        sweep_all.sweep(4_000_000_000_000, 4_000_000_000_001)
        assert Path(inbox.path).read_text() == ""


def test_lines_of_a_terminal_get_no_older_than_the_whole_time(team: Path, tmp_path: Path) -> None:
    newer, older = team / "history.log", team / "history.old.log"
    make(newer, "new\n", 1)
    sweep(tmp_path)
    assert (newer.read_text(), older.read_text()) == ("new\n", ""), "from now on it is known how old its lines may be"
    sweep(tmp_path)
    assert newer.read_text() == "new\n"
    make(older, "old\n", 20)
    sweep(tmp_path)
    assert (newer.exists(), older.read_text()) == (False, "new\n"), "half of the time is over"
    make(newer, "newer\n")
    sweep(tmp_path)
    assert (older.read_text(), newer.read_text()) == ("new\n", "newer\n")
    make(newer, "newer\n", 31)
    make(older, "new\n", 31)
    make(team / "screen.txt", "still there")
    sweep(tmp_path)
    assert (newer.exists(), older.exists()) == (False, False)


def test_the_folder_of_one_that_is_long_gone_goes_but_not_while_its_wrapper_runs(team: Path, tmp_path: Path) -> None:
    lock = make(team / "screen.lock", "", 40)
    make(team / "screen.json", "{}", 40)
    os.utime(team, (0, 0))
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        sweep(tmp_path)
        assert team.exists()
    sweep(tmp_path)
    assert not team.exists()


def test_what_was_left_in_an_outbox_goes_when_it_is_too_old(tmp_path: Path) -> None:
    outbox = tmp_path / "outbox" / "Bob"
    old, new = make(outbox / ".picked-00000000-note", "x", 31), make(outbox / "note.failed", "x", 29)
    sweep(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)


def test_nothing_outside_is_touched_through_a_link(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside" / "screen.json", "{}", 40)
    os.utime(outside.parent, (0, 0))
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "Bob").symlink_to(outside.parent)
    sweep(tmp_path)
    assert AgentFiles(str(tmp_path)).erase("Bob") == 0
    assert outside.exists()


def test_one_agent_is_erased_however_its_name_is_written(tmp_path: Path) -> None:
    make(tmp_path / "team" / "Bob" / "inbox.md", "x")
    make(tmp_path / "outbox" / "Bob" / "note", "x")
    kept = make(tmp_path / "team" / "Bobby" / "inbox.md", "x")
    assert AgentFiles(str(tmp_path)).erase("bOB") == 2
    assert kept.exists()
    assert sorted(file.name for file in (tmp_path / "team").iterdir()) == ["Bobby"]


def test_what_an_erased_agent_wrote_goes_from_the_inboxes_of_others(team: Path, tmp_path: Path) -> None:
    inbox = InboxFile(str(team))
    for number, (sender, body) in enumerate(
        [("Alice", "kept"), ("Mallory", "a secret"), ("mallory", "another"), ("Alice", "too")]
    ):
        inbox.add(ShownMessage(f"msg_{number}", sender, f"{body}\n## 2031-01-01 00:00:00 UTC  from Mallory  [x]"))
    assert AgentFiles(str(tmp_path)).erase("Mallory") == 1
    left = Path(inbox.path).read_text()
    assert [line for line in left.splitlines() if line.startswith("> ") and "##" not in line] == ["> kept", "> too"]
    assert AgentFiles(str(tmp_path)).erase("Mallory") == 0


def test_a_wrapper_that_writes_while_its_inbox_is_cut_loses_nothing(team: Path, tmp_path: Path) -> None:
    inbox = make(team / "inbox.md", entry(NOW_MS - 60 * DAY_MS, "old"))
    new = [entry(NOW_MS, f"number {number}") for number in range(300)]

    def write() -> None:
        for each in new:
            append_private(str(inbox), each.encode())

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        AgentFiles(str(tmp_path)).sweep(BEFORE_MS, NOW_MS)
        with inbox.open("r+b") as file:  # so that every sweep has something to cut
            fcntl.flock(file, fcntl.LOCK_EX)
            content = file.read()
            file.seek(0)
            file.write(entry(NOW_MS - 60 * DAY_MS, "old").encode() + content)
    writer.join()
    AgentFiles(str(tmp_path)).sweep(BEFORE_MS, NOW_MS)
    assert inbox.read_text() == "".join(new)
