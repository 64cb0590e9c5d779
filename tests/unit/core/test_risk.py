"""How much harm a request could do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.core.risk import Risk, assess, has_word, is_plain, parts


@pytest.mark.parametrize(
    ("kind", "command", "file_path", "risk"),
    [
        ("bash", "make test", None, "medium"),
        ("bash", "make test && make install", None, "high"),
        ("bash", "sudo make install", None, "high"),
        ("bash", "git push origin main", None, "high"),
        ("bash", "rm x", None, "critical"),
        ("bash", "psql -c 'DROP TABLE x'", None, "critical"),
        ("powershell", "x; DELETE y", None, "critical"),
        ("bash", "", None, "high"),
        ("bash", None, None, "high"),
        ("read", None, "src/x.py", "low"),
        ("grep", None, None, "low"),
        ("read", None, "/somewhere/.ssh/id_rsa", "medium"),
        ("edit", None, "src/x.py", "medium"),
        ("edit", None, "src/../../x", "high"),
        ("write", None, "/etc/hosts", "high"),
        ("write", None, "etc/hosts", "medium"),
        ("write", None, "//etc/hosts", "high"),
        ("write", None, ".env.local", "high"),
        ("write", None, ".git/hooks/pre-commit", "high"),
        ("write", None, "~/x", "high"),
        ("edit", None, None, "high"),
        ("fetch", None, None, "medium"),
        ("something of an MCP server", None, None, "medium"),
        ("something of an MCP server", "rm x", None, "critical"),
        ("something of an MCP server", "curl x", None, "high"),
        ("read", None, "SRC/.Env", "medium"),
        ("write", None, "tls/server.key", "high"),
        ("", None, None, "medium"),
    ],
)
def test_risk(kind: str, command: str | None, file_path: str | None, risk: str) -> None:
    assert assess(kind, command, file_path) is Risk(risk)


OPERATORS = [
    ";",
    "|",
    "&",
    ">",
    "<",
    "$(",
    "`",
    "\n",
    "$",
    "(",
    ")",
    "{",
    "}",
    "'",
    '"',
    "\\",
    "\t",
    "\r",
    "\0",
    "*",
    "?",
    "[",
    "~",
    "#",
    "!",
]


@pytest.mark.parametrize("command", ["ls", "git log --oneline -5", "make test", "./run.sh a=b", "pytest tests/unit/x.py::test_y"])
def test_words_are_plain(command: str) -> None:
    assert is_plain(command)


@pytest.mark.parametrize(
    "command", ["", " ", " ls", "ls ", "git  log", "ls\u00a0-a", "ｌｓ", "l\u0455", "ls\u200b", "ls\u2028pwd", "é"]
)
def test_what_is_not_one_word_after_the_other_is_not(command: str) -> None:
    assert not is_plain(command)


@given(st.text(max_size=5), st.sampled_from(OPERATORS), st.text(max_size=5))
def test_nothing_with_an_operator_is_plain(before: str, operator: str, after: str) -> None:
    assert not is_plain(f"ls {before}{operator}{after}")


@pytest.mark.parametrize(
    "command",
    [
        "rm x", "sudo rm -rf /", "ls;rm x", "r\\m x", "r''m x", 'r""m x', "'rm' x", "\\rm x", "/bin/rm x", "RM x", "ｒｍ x",
        "r\u200bm x", "r\u00adm x", "echo $(rm x)", "x`rm y`", "xargs rm", "ls\nrm x", "ls\r\nrm x", "rm", "git rm x", "r\0m",
    ],
)  # fmt: skip
def test_a_word_is_found_however_it_is_written(command: str) -> None:
    assert has_word(command, ("rm",))


@pytest.mark.parametrize("command", ["npm run format", "alarm", "rmx", "1rm", "warm up", ""])
def test_a_part_of_another_word_is_not_the_word(command: str) -> None:
    assert not has_word(command, ("rm",))


def test_a_chain_has_parts() -> None:
    assert list(parts("cd  x && git   PUSH; (ls)")) == ["cd x && git push; (ls)", "cd x", "git push", "ls"]
