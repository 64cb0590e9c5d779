"""The rules: the defaults word by word, every trick to get around them, and rules of one's own."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_relay.core.policy import DEFAULT_RULES, Policy, Rule, Ruling, Verdict
from agent_relay.core.risk import Risk
from agent_relay.protocol.requests import PermissionRequest
from agent_relay.protocol.tool_names import kind_of

APPROVED = ("ls", "pwd")
ROOT = "/srv/u/shop"
SHELLS = ("Bash", "bash", "shell", "run_shell_command", "commandExecution", "exec_command", "local_shell")

# Everything of this is put in front of a person, whichever shell tool asks.
TRICKS = [
    "git status", "git log", "git diff",
    "ls; rm -rf x", "git status && curl x | sh", "git status & x", "ls | sh", "ls || x", "ls > x", "ls >> x", "ls < x", "ls $(x)",
    "ls `x`", "ls $x", "ls ${x}", "ls\nrm x", "ls\n", "\nls", "ls\rrm x", "ls\r\n", "ls\x0bx", "ls\x0cx", "ls\0", "ls\0rm",
    "ls \\\nrm", "\\ls", "l\\s", "'ls'", '"ls"', "l''s", "$'ls'", "(ls)", "{ ls; }", "! ls", "ls #", "#ls", "~/ls", "ls *",
    "ls ?",
    " ls", "ls ", "ls\t", "\tls", "git  status", "git\tstatus", "git\u00a0status", "git\u2003status", "git log ",
    "/bin/ls", "./ls", "../ls", "command ls", "exec ls", "eval ls", "env ls", "A=b ls", "GIT_PAGER=x git log", "sudo ls",
    "nohup ls",
    "bash -c ls", "sh -c 'git status'", "xargs ls", "busybox ls", "time ls", "alias ls=x", "ls -la", "ls .", "ls -l /etc",
    "git log --output=/x", "git log -p --ext-diff", "git diff --no-index /a /b", "git diff --ext-diff", "git diff -Ox",
    "git diff HEAD",
    "git diff --output=x", "git -c core.pager=x log", "git -c core.fsmonitor=x status", "git --git-dir=x status",
    "git -C x status",
    "git status --porcelain", "git log -1", "git push", "git", "git stash", "git log;", "git diff|x", "git\nstatus",
    "git stat\\us",
    "LS", "Ls", "GIT STATUS", "ｌｓ", "l\u0455", "\u0456s", "ls\u200b", "\u200bls", "ls\ufeff", "\ufeffls",
    "g\u0456t status", "git statuѕ",
    "ls\u2028rm", "ls\u2029rm", "ls\u0085rm", "ls\u202e", "gi\u0307t log", "ls\x1b[2K", "ls\x08", "ls\x7f", "", " ", "\n",
    "pwd;", "pwd&", "pwd -P", "echo ls", "ls,pwd", "ls=pwd", "ls:pwd", "ls%", "ls^", "^ls^rm", "!!", "!ls", "%1",
]  # fmt: skip


def ask(
    tool: str, command: str = "", path: str = "", real: str | None = None, root: str | None = None, *, text: str = "",
    is_exact: bool = True,
) -> PermissionRequest:  # fmt: skip
    return PermissionRequest("p1", text, tool, command or None, path or None, real, root, is_exact=is_exact)


def decide(tool: str, command: str | None = None, file_path: str | None = None, *rules: Rule) -> Verdict:
    """A file is where its path says: no link leads elsewhere."""
    real = posixpath.join(ROOT, file_path) if file_path else None
    return Policy(rules).judge(ask(tool, command or "", file_path or "", real, ROOT))


LOOKING = ["Read", "read", "read_file", "Glob", "Grep", "search_file_content"]


@pytest.mark.parametrize("tool", LOOKING)
@pytest.mark.parametrize("path", ["src/x.py", "README", f"{ROOT}/src/env.py", "keys/keyboard.py", "environment/x"])
def test_looking_at_files_of_the_project_is_approved(tool: str, path: str) -> None:
    verdict = decide(tool, None, path)
    assert (verdict.decision, verdict.risk) == (Ruling.APPROVE, Risk.LOW)
    assert verdict.reason


@pytest.mark.parametrize("tool", LOOKING)
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "/srv/u/shop2/x", "/srv/u/shopping", "/srv/u", "/", "../x", "/srv/u/shop/../x", "~/x", "a,b",
        ".env", "a/.env.local", ".ENV", "prod.env", "deploy/id_rsa", "tls/server.key", "cert.PEM", ".git/config", ".npmrc",
        ".agent-relay/projects/1/api-token", "api-token", ".ssh/x", "secrets/x.py", ".aws/credentials", "x\u202ey",
    ],
)  # fmt: skip
def test_what_is_outside_or_private_is_for_a_person(tool: str, path: str) -> None:
    assert decide(tool, None, path).decision is Ruling.HUMAN


@pytest.mark.parametrize(
    ("given", "real", "root"),
    [
        ("src/x.py", "/srv/u/.ssh/id_rsa", ROOT),  # a link out of the project
        ("src/x.py", f"{ROOT}/.env", ROOT),  # a link to what is private
        (".env", f"{ROOT}/src/x.py", ROOT),  # a private name
        ("src/x.py", None, ROOT),  # not surely known
        ("src/x.py", f"{ROOT}/src/x.py", None),  # nobody knows the project
        ("src/x.py", "src/x.py", ""),
        ("src/x.py", "x", "/"),
    ],
)
def test_where_a_file_really_is_decides(given: str, real: str | None, root: str | None) -> None:
    assert Policy().judge(ask("Read", "", given, real, root)).decision is Ruling.HUMAN


def test_a_pattern_of_private_files_is_for_a_person() -> None:
    assert Policy().judge(ask("Glob", "src/**/*.py", "", ROOT, ROOT)).decision is Ruling.APPROVE
    for pattern in ("**/.env", ".ssh/*", "**/*.pem"):
        assert Policy().judge(ask("Glob", pattern, "", ROOT, ROOT)).decision is Ruling.HUMAN


@pytest.mark.parametrize("tool", SHELLS)
@pytest.mark.parametrize("command", APPROVED)
def test_the_harmless_commands_are_approved(tool: str, command: str) -> None:
    assert decide(tool, command) == Verdict(Ruling.APPROVE, Risk.LOW, "The command only shows something.")


@pytest.mark.parametrize("command", TRICKS, ids=ascii)
def test_every_trick_ends_with_a_person(command: str) -> None:
    assert {decide(tool, command).decision for tool in SHELLS} == {Ruling.HUMAN}


@pytest.mark.parametrize(
    "command",
    ["rm x", "ls; rm -rf x", "kubectl delete pod x", "DROP TABLE x", "truncate -s 0 x", "r''m x", "find . -delete", "/bin/rm x"],
)
def test_what_destroys_is_critical(command: str) -> None:
    verdict = decide("Bash", command)
    assert (verdict.decision, verdict.risk) == (Ruling.HUMAN, Risk.CRITICAL)


@pytest.mark.parametrize(
    "tool", ["Write", "Edit", "WebFetch", "mcp__x__read", "PowerShell", "LS", "Task", "", "a tool", "rеad", "Read "]
)
@pytest.mark.parametrize("command", [None, "ls", "pwd"])
def test_every_other_tool_is_for_a_person(tool: str, command: str | None) -> None:
    assert decide(tool, command, "x").decision is Ruling.HUMAN


def test_a_shell_without_a_command_is_for_a_person() -> None:
    assert decide("Bash").decision is Ruling.HUMAN
    assert decide("Bash", None, "ls").decision is Ruling.HUMAN


def test_nothing_read_off_a_screen_is_approved_by_a_rule() -> None:
    own = Rule(Ruling.APPROVE, tools=("*",))
    for policy in (Policy(), Policy([own])):
        for tool, command in (("Read", None), ("Bash", "ls")):
            assert policy.judge(ask(tool, command or "", is_exact=False)).decision is Ruling.HUMAN
    strict = Policy([Rule(Ruling.DENY, words=("curl",))])
    assert strict.judge(ask("Bash", "curl x", is_exact=False)).decision is Ruling.DENY


@pytest.mark.parametrize("asked", [
    ask("", "", text="Allow execution of: rm -rf build?", is_exact=False),
    ask("", "make", text="Run this?\nYes\nYes, and do not ask again for rm commands", is_exact=False),
    ask("some tool", "", text="DROP TABLE users?", is_exact=False),
    ask("Read", "", "x", text="r\u200bm -rf /", is_exact=False),
    ask("mcp__sh__run", "rm -rf build"),
])  # fmt: skip
def test_what_destroys_is_critical_wherever_a_dialog_shows_it(asked: PermissionRequest) -> None:
    assert Policy().judge(asked) == Verdict(Ruling.HUMAN, Risk.CRITICAL, Policy().judge(asked).reason)


def test_a_rule_against_something_finds_it_in_a_dialog_of_no_known_tool() -> None:
    rules = [Rule(Ruling.DENY, tools=("bash",), words=("curl",)), Rule(Ruling.DENY, tools=("bash",), commands=("git push*",))]
    for text in ("Run: curl x?", "May I?\ngit push -f"):
        assert Policy(rules).judge(ask("", "", text=text, is_exact=False)).decision is Ruling.DENY
    assert Policy(rules).judge(ask("", "", text="May I?", is_exact=False)).decision is Ruling.HUMAN
    assert Policy(rules).judge(ask("edit", "", text="curl", is_exact=False)).decision is Ruling.HUMAN


# --- properties ----------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [*APPROVED, "rm", "git", "-la", "--output=x", " ", "  ", "\n", "\r", "\t", "\0", ";", "|", "&", "&&", ">", "<", "$(",
    ")", "`",
     "'", '"', "\\", "\\\n", "/bin/ls", "env", "A=b", "~", "*", "#", "ｌｓ", "\u200b", "\u00a0", "\u2028", "bash -c"]
)  # fmt: skip
COMMANDS = st.one_of(st.text(max_size=30), st.lists(st.one_of(WORDS, st.text(max_size=3)), max_size=8).map("".join))


@given(st.sampled_from(SHELLS), COMMANDS)
@example("Bash", "ls")
def test_the_defaults_approve_the_exact_words_and_nothing_else(tool: str, command: str) -> None:
    assert (decide(tool, command).decision is Ruling.APPROVE) is (command in APPROVED)


@given(st.text(max_size=12), COMMANDS)
def test_a_tool_that_is_not_known_is_never_approved(tool: str, command: str) -> None:
    if kind_of(tool) not in {"read", "glob", "grep", "bash"}:
        assert decide(tool, command).decision is Ruling.HUMAN


@given(COMMANDS, st.text(max_size=20))
def test_every_request_has_a_risk_and_a_reason(command: str, file_path: str) -> None:
    for tool in ("Bash", "Read", "Write", "x"):
        verdict = decide(tool, command, file_path)
        assert verdict.risk in set(Risk)
        assert verdict.reason


@given(st.sampled_from(["make *", "git log*", "*", "ls ?", "echo [a-z]*"]), COMMANDS)
def test_a_rule_of_one_s_own_approves_no_chain_either(pattern: str, command: str) -> None:
    verdict = decide("Bash", command, None, Rule(Ruling.APPROVE, tools=("bash",), commands=(pattern,)))
    if (
        any(sign in command for sign in (";", "|", "&", ">", "<", "$", "`", "\n", "\r", "\t", "\0", "'", '"', "\\"))
        or not command.isascii()
    ):
        assert verdict.decision is Ruling.HUMAN


# --- rules of one's own --------------------------------------------------------------------------------------------------

MAKE = Rule(Ruling.APPROVE, tools=("bash",), commands=("make test", "pytest *"))
NO_CURL = Rule(Ruling.DENY, words=("curl", "wget"), risk=Risk.HIGH, reason="Nothing is fetched here.")


def test_the_first_rule_that_fits_wins() -> None:
    ask = Rule(Ruling.HUMAN, tools=("bash",), commands=("make test",))
    assert decide("Bash", "make test", None, MAKE).decision is Ruling.APPROVE
    assert decide("Bash", "make test", None, ask, MAKE).decision is Ruling.HUMAN
    assert decide("Bash", "make test", None, MAKE, ask).decision is Ruling.APPROVE
    assert decide("Read", None, "x", Rule(Ruling.DENY, tools=("read",))).decision is Ruling.DENY


def test_a_rule_that_does_not_say_has_a_reason_and_a_risk_all_the_same() -> None:
    assert decide("Bash", "pytest x", None, MAKE) == Verdict(Ruling.APPROVE, Risk.MEDIUM, "A rule approves it.")
    assert decide("Bash", "curl x", None, NO_CURL) == Verdict(Ruling.DENY, Risk.HIGH, "Nothing is fetched here.")


@pytest.mark.parametrize("command", ["curl x", "ls; curl x", "c''url x", "CURL x", "/usr/bin/curl x", "echo x | wget -i -"])
def test_a_forbidden_word_is_found_wherever_it_stands(command: str) -> None:
    assert decide("Bash", command, None, NO_CURL).decision is Ruling.DENY


@pytest.mark.parametrize("command", ["git push", "cd x && git push -f", "(git  push)", "GIT push x", "x; git push"])
def test_a_forbidden_command_is_found_in_a_chain(command: str) -> None:
    assert decide("Bash", command, None, Rule(Ruling.DENY, commands=("git push*",))).decision is Ruling.DENY


def test_tools_are_named_by_kind_or_by_the_cli_s_own_name() -> None:
    assert decide("WebFetch", None, None, Rule(Ruling.DENY, tools=("fetch",))).decision is Ruling.DENY
    assert decide("WebFetch", None, None, Rule(Ruling.DENY, tools=("WebFetch",))).decision is Ruling.DENY
    assert decide("mcp__db__query", None, None, Rule(Ruling.APPROVE, tools=("mcp__db__*",))).decision is Ruling.APPROVE
    assert decide("mcp__web__get", None, None, Rule(Ruling.APPROVE, tools=("mcp__db__*",))).decision is Ruling.HUMAN


def test_a_rule_may_be_for_the_project_alone() -> None:
    rule = Rule(Ruling.APPROVE, tools=("edit",), in_project=True)
    assert decide("Edit", None, "src/x.py", rule).decision is Ruling.APPROVE
    for path in ("/etc/x", ".env", ".git/hooks/pre-commit"):
        assert decide("Edit", None, path, rule).decision is Ruling.HUMAN


DOCS = Rule(Ruling.APPROVE, tools=("edit", "write"), files=("docs/*", "/srv/docs/*"))


@pytest.mark.parametrize("path", ["docs/x.md", "docs/a/b.md", "/srv/docs/ü.md"])
def test_files_may_be_approved(path: str) -> None:
    assert decide("Write", None, path, DOCS).decision is Ruling.APPROVE


@pytest.mark.parametrize(
    "path",
    [
        "docs/../x",
        "docs/./x",
        "docs//x",
        "docs/x, /etc/passwd",
        "docs/a,b",
        "docs/x\n/etc/passwd",
        "docs/\u202ex",
        "/etc/passwd",
        "~/docs/x",
        "",
        "docs",
    ],
)
def test_a_path_that_means_something_else_is_for_a_person(path: str) -> None:
    assert decide("Write", None, path, DOCS).decision is Ruling.HUMAN


def test_a_forbidden_file_is_found_however_its_path_is_written() -> None:
    rule = Rule(Ruling.DENY, files=("/etc/*",))
    for path in ("/etc/passwd", "/x/../etc/passwd", "/etc//passwd", "//etc/passwd"):
        assert decide("Write", None, path, rule).decision is Ruling.DENY


def test_all_conditions_of_a_rule_must_hold() -> None:
    rule = Rule(Ruling.DENY, tools=("bash",), commands=("git *",), words=("force",))
    assert decide("Bash", "git push --force", None, rule).decision is Ruling.DENY
    assert decide("Bash", "git push", None, rule).decision is Ruling.HUMAN
    assert decide("x", "git push --force", None, rule).decision is Ruling.HUMAN


def test_a_word_alone_approves_nothing() -> None:
    with pytest.raises(ValueError, match="words"):
        Rule(Ruling.APPROVE, tools=("bash",), words=("make",))


def test_the_defaults_come_last_and_always() -> None:
    assert Policy().rules == DEFAULT_RULES
    assert Policy([MAKE]).rules == (MAKE, *DEFAULT_RULES)
    assert Policy().timeout_ms is None
    assert Policy(timeout_ms=5).timeout_ms == 5


def test_what_may_have_been_cut_is_not_approved() -> None:
    every = Rule(Ruling.APPROVE, tools=("bash", "write"), commands=("pytest *",))
    assert decide("Bash", "pytest " + "x" * 993, None, every).decision is Ruling.APPROVE
    assert decide("Bash", "pytest " + "x" * 994, None, every).decision is Ruling.HUMAN
    assert decide("Write", None, "docs/" + "x" * 996, DOCS).decision is Ruling.HUMAN


def test_a_very_long_command_is_judged_at_once() -> None:
    rules = [
        Rule(Ruling.DENY, commands=("*a*b*c*d*e*f*g*",)),
        Rule(Ruling.APPROVE, tools=("bash",), commands=("*a*b*c*d*e*f*g*",)),
    ]
    assert decide("Bash", "abcdef" * 3_000, None, *rules).decision is Ruling.HUMAN
