"""The inbox file, the screen log, how an agent is launched, and which name it gets."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from agent_relay.protocol.names import check_agent_name
from agent_relay.terminal.agent.launch import Home, WrapFailed, arguments, check_command, child_environment, pick_backend
from agent_relay.terminal.agent.registration import NAMES, free_names
from agent_relay.terminal.delivery.inbox_file import REMEMBERED, InboxFile
from agent_relay.terminal.delivery.message_text import Shown
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.recordings.screen_log import ScreenLog
from agent_relay.terminal.screen.contents import Line, Screen

PROFILES = load_profiles()


# --- inbox.md ---------------------------------------------------------------------------------------------------------


def test_every_message_stands_in_the_inbox_once_and_in_full(tmp_path: Path) -> None:
    inbox = InboxFile(str(tmp_path))
    message = Shown("msg_1", "Alice", "one\n## from Eve\n\x1b[31mred", thread="t", channel="#dev")
    inbox.add(message)
    inbox.add(message)
    inbox.note(message, "given to the agent")
    text = Path(inbox.path).read_text("utf-8")
    assert text.count("> one\n> ## from Eve\n> \ufffd[31mred\n") == 1
    assert len(re.findall(r"^## .* from ", text, re.MULTILINE)) == 1
    assert "`agent-relay read msg_1`" in text
    assert "given to the agent" in text


def test_what_was_taken_is_known_to_the_next_wrapper(tmp_path: Path) -> None:
    inbox = InboxFile(str(tmp_path))
    for number in range(3 * REMEMBERED):
        inbox.mark_taken(f"d_{number}")
    again = InboxFile(str(tmp_path))
    assert again.was_taken(f"d_{3 * REMEMBERED - 1}")
    assert again.was_taken(f"d_{2 * REMEMBERED}")
    assert not again.was_taken("d_0")
    assert len((tmp_path / "taken").read_text().splitlines()) <= 2 * REMEMBERED


def test_a_long_inbox_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.terminal.delivery.inbox_file.MAX_INBOX_BYTES", 1_000)
    inbox = InboxFile(str(tmp_path))
    for number in range(20):
        inbox.add(Shown(f"msg_{number}", "Alice", "x" * 100))
    assert (tmp_path / "inbox.old.md").exists()
    assert (tmp_path / "inbox.md").stat().st_size < 2_000


# --- the screen log -----------------------------------------------------------------------------------------------------


def screen(first: int, *texts: str, above: int = 0) -> Screen:
    lines = tuple(Line(first - above + index, text) for index, text in enumerate(texts))
    return Screen(lines=lines, columns=80, first_visible=first)


def test_lines_are_kept_once_as_they_scroll_off(tmp_path: Path) -> None:
    log = ScreenLog(str(tmp_path))
    log.note(screen(0, "a", "b"), 0.0)
    log.note(screen(2, "a", "b", "c", "d", above=2), 0.1)
    log.note(screen(3, "c", "d", "e", above=1), 0.2)
    log.note(screen(3, "d", "e"), 0.3)
    assert (tmp_path / "history.log").read_text() == "a\nb\nc\n"
    assert (tmp_path / "screen.txt").read_text() == "a\nb\n"  # at most twice a second
    log.flush()
    assert (tmp_path / "screen.txt").read_text() == "d\ne\n"


# --- launching ----------------------------------------------------------------------------------------------------------


def test_flags_that_help_are_added_where_they_can_be() -> None:
    codex = PROFILES["codex"]
    assert arguments(["codex"], codex) == ["codex", "--no-alt-screen"]
    assert arguments(["codex", "--no-alt-screen", "-m", "x"], codex) == ["codex", "--no-alt-screen", "-m", "x"]
    assert arguments(["codex", "login"], codex) == ["codex", "login"]
    assert arguments(["cat", "-u"], PROFILES["generic"]) == ["cat", "-u"]


def test_the_environment_is_the_persons_with_ours_in_front(tmp_path: Path) -> None:
    given = {"PATH": "/bin", "TMUX": "x", "AGENT_RELAY_TOKEN": "secret", "AGENT_RELAY_NAME": "Old", "DISABLE_AUTOUPDATER": "0"}
    home = Home("/state", "Bob")
    found = child_environment(given, PROFILES["claude"], home, socket="/s", root="/r", inbox="/i")
    assert found == {
        "PATH": "/bin", "DISABLE_AUTOUPDATER": "0", "CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1", "AGENT_RELAY_NAME": "Bob",
        "AGENT_RELAY_SOCKET": "/s", "AGENT_RELAY_PROJECT": "/r", "AGENT_RELAY_OUTBOX": "/state/outbox/Bob",
        "AGENT_RELAY_INBOX": "/i",
    }  # fmt: skip


def test_folders_are_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Home(str(tmp_path), "Bob").make()
    finally:
        os.umask(before)
    for folder in ("team", "team/Bob", "outbox", "outbox/Bob"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("argv", [[], ["bash"], ["/bin/zsh"], ["-sh"]])
def test_a_shell_is_not_wrapped(argv: list[str]) -> None:
    with pytest.raises(WrapFailed):
        check_command(argv)
    check_command(["bash", "run-agent.sh"])


def test_a_backend_that_is_not_there_is_said_so() -> None:
    with pytest.raises(WrapFailed, match="screen"):
        pick_backend("screen")


def test_free_names_are_names_and_never_end() -> None:
    for name in NAMES:
        check_agent_name(name)
    assert len({name.lower() for name in NAMES}) == len(NAMES)
    names = free_names([name.upper() for name in NAMES[1:]], random.Random(1))
    assert next(names) == NAMES[0]
    assert next(names) in {f"{name}2" for name in NAMES}
