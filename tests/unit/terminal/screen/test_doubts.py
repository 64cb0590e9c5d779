"""What a program without a known prompt asks for."""

from __future__ import annotations

import pytest

from agent_relay.terminal.screen.doubts import asks_for_something_else, looks_like_shell


@pytest.mark.parametrize(
    "row",
    [
        "",
        ">",
        ">>>",
        "[chat]",
        "[my agent]",
        "[code]",
        "my-code>",
        "What now?",
        "How can I help?",
        "you:",
        "$",
        "Your message:",
        "In [1]:",
    ],
)
def test_a_message_may_be_the_answer(row: str) -> None:
    assert not asks_for_something_else(row)


@pytest.mark.parametrize(
    "row",
    [
        "Password:", "Enter your API key:", "root@host's password:", "Username:", "Login:", "Verification code:", "Token?",
        "Delete everything?", "Continue?", "remove regular file 'x'?", "Are you sure?", "What is your password?",
        "What should I delete?", "[Y/n]", "[no]", "[y]", "Overwrite [N]", "name [untitled]", "(Pdb)", "(gdb)", "(END)",
        "--More--", "Press any key", ":", "Which one?", "x" * 90 + "?",
    ],
)  # fmt: skip
def test_a_message_must_not_be_the_answer(row: str) -> None:
    assert asks_for_something_else(row)


@pytest.mark.parametrize(
    ("row", "is_line_read", "is_shell"),
    [
        ("$", True, False), ("$ Relay message", True, False), ("%", True, False), ("$", False, True), ("bash-5.2$", True, True),
        ("root@host:~#", True, True), ("#", True, True), ("user@host:~$ ", True, True), ("> costs 5$ each", True, False),
    ],
)  # fmt: skip
def test_a_bare_mark_is_a_shells_only_where_the_reader_is_not_known(row: str, is_line_read: bool, is_shell: bool) -> None:
    assert looks_like_shell(row, is_line_read=is_line_read) is is_shell
