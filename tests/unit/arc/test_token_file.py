"""Tokens on disk: private, whole, and told apart by relay."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from agent_relay.arc.errors import ArcError
from agent_relay.arc.token_file import TokenFile


def test_tokens_are_kept_by_relay_and_agent(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path / "state"))
    assert file.all() == []
    file.keep("ws://one:3888/arc", "bob", "tok_1")
    file.keep("http://ONE:3888", "carol", "tok_2")
    file.keep("wss://two/arc", "bob", "tok_3")
    file.keep("ws://one:3888", "bob", "tok_4")  # a newer one of the same
    assert {(kept.agent_id, kept.token) for kept in file.find("http://one:3888/")} == {("bob", "tok_4"), ("carol", "tok_2")}
    assert [kept.token for kept in file.find("https://two", "bob")] == ["tok_3"]
    assert "tok_3" not in repr(file.all())
    file.forget("https://two", "bob")
    assert file.find("https://two") == []


def test_the_projects_own_daemon_is_one_relay_wherever_it_listens(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path))
    file.keep("http://127.0.0.1:3888", "bob", "tok_1", own=True)
    file.keep("ws://127.0.0.1:4000/arc", "bob", "tok_2")
    assert [kept.token for kept in file.find("http://127.0.0.1:5555", "bob", own=True)] == ["tok_1"]
    assert file.find("http://127.0.0.1:5555") == []  # named by its address it is a relay like any other
    file.keep("http://127.0.0.1:5555", "bob", "tok_3", own=True)
    assert [kept.token for kept in file.find("http://127.0.0.1:6666", own=True)] == ["tok_3"]
    file.forget("http://127.0.0.1:6666", "bob", own=True)
    assert [kept.token for kept in file.all()] == ["tok_2"]


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path / "state"))
    file.keep("ws://one/arc", "bob", "tok_1")
    assert stat.S_IMODE(Path(file.path).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    Path(file.path).chmod(0o640)
    with pytest.raises(ArcError, match="chmod 600"):
        file.all()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    file = TokenFile(str(tmp_path))
    (tmp_path / "elsewhere").write_text("{}")
    Path(file.path).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        file.all()


@pytest.mark.parametrize("content", ["", "[]", '{"tokens": [1]}', "{nonsense"])
def test_a_file_that_is_none_is_said_and_left_alone(tmp_path: Path, content: str) -> None:
    file = TokenFile(str(tmp_path))
    Path(file.path).write_text(content)
    Path(file.path).chmod(0o600)
    with pytest.raises(ArcError, match="is not valid"):
        file.keep("ws://one/arc", "bob", "tok_1")
    assert Path(file.path).read_text() == content


def test_two_at_once_both_keep_theirs(tmp_path: Path) -> None:
    def keep(number: int) -> None:
        TokenFile(str(tmp_path)).keep("ws://one/arc", f"agent-{number}", f"tok_{number}")

    threads = [threading.Thread(target=keep, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(TokenFile(str(tmp_path)).all()) == 20
