"""The journal: what outlives a crash, and what a crash may have cut off."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.patterns.run.journal import Journal
from agent_relay.patterns.run.plan import Plan
from agent_relay.patterns.tasks import Answer
from agent_relay.protocol.errors import RelayError

PLAN = Plan("review", {}, (), "", "0123456789abcdef0123")
ANSWER = Answer("Worker", "Worker-1-3fa9", "yes", 1, 2.5, {"a": 1}, "task-3fa9-1")


def opened(folder: Path, *, is_fresh: bool = False) -> Journal:
    journal = Journal(str(folder), PLAN)
    journal.open(is_fresh=is_fresh)
    return journal


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.memory_of("a").keep("k", ANSWER)
        first.keep_step("b", {"output": "done"})
    with opened(tmp_path) as again:
        assert (again.name, again.kept) == (first.name, 1)
        assert again.memory_of("a").recall("k") == ANSWER
        assert again.memory_of("b").recall("k") is None
        assert (again.step_value("b"), again.step_value("a")) == ({"output": "done"}, None)
    assert os.stat(first.path).st_mode & 0o777 == 0o600
    with opened(tmp_path, is_fresh=True) as anew:
        assert (anew.kept, anew.step_value("b"), anew.name != first.name) == (0, None, True)
        anew.remove()
    assert not os.path.exists(anew.path)


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_line_that_was_cut_off_is_dropped_and_written_over(tmp_path: Path, cut: int) -> None:
    with opened(tmp_path) as first:
        first.keep("one", ANSWER)
        first.keep("two", ANSWER)
    path = Path(first.path)
    path.write_bytes(path.read_bytes()[:-cut])
    with opened(tmp_path) as again:
        assert (again.recall("one"), again.recall("two")) == (ANSWER, None)
        again.keep("three", ANSWER)
    with opened(tmp_path) as last:
        assert (last.recall("one"), last.recall("three")) == (ANSWER, ANSWER)


def test_a_file_of_something_else_is_begun_anew(tmp_path: Path) -> None:
    path = Path(Journal(str(tmp_path), PLAN).path)
    path.parent.mkdir()
    path.write_bytes(b"\xff\x00 nonsense\n[]\n")
    with opened(tmp_path) as journal:
        assert journal.kept == 0
        journal.keep("k", ANSWER)
    with opened(tmp_path) as again:
        assert again.recall("k") == ANSWER


def test_the_same_plan_runs_once_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(RelayError, match="runs already, with the same variables"):
        opened(tmp_path)
    with opened(tmp_path):
        pass


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = Path(Journal(str(tmp_path), PLAN).path)
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        opened(tmp_path)
