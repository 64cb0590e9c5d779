"""Rules added from the page: what they may be, what they would have approved, and what is written."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent_relay.core.policy import Policy, Rule, Ruling
from agent_relay.daemon.added_rules import AddedRules
from agent_relay.daemon.config import load_config
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.requests import PermissionRequest


def command(text: str, **more: Any) -> PermissionRequest:
    return PermissionRequest("p1", "", "Bash", text, **({"is_exact": True} | more))


def file(path: str, tool: str = "Edit") -> PermissionRequest:
    return PermissionRequest("p1", "", tool, file_path=path, real_path=path, project_root="/srv/shop", is_exact=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "config.toml"


@pytest.fixture
def rules(path: Path) -> AddedRules:
    return AddedRules(Policy(), str(path))


def refusal(rules: AddedRules, asked: PermissionRequest, pattern: str = "") -> str:
    with pytest.raises(RelayError) as raised:
        rules.check(asked, pattern) if pattern else rules.shape(asked)
    return raised.value.message


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (command("make test && curl x"), "plain commands"),
        (command("rm -rf build"), "can destroy"),
        (command("make test", is_exact=False), "read off a screen"),
        (file("/srv/shop/.env"), "private"),
        (file("/etc/passwd"), "outside"),
        (PermissionRequest("p1", "", "WebFetch", is_exact=True), "neither a command nor a file"),
    ],
)
def test_for_some_requests_there_is_no_rule(rules: AddedRules, asked: PermissionRequest, words: str) -> None:
    assert words in refusal(rules, asked)


@pytest.mark.parametrize(
    ("asked", "pattern", "words"),
    [
        (command("make test"), "*", "whole program"),
        (command("make test"), "mak*", "whole program"),
        (command("make test"), "make rm*", "destroy"),
        (command("make test"), "make test; ls", "has letters"),
        (command("make test"), "make lint", "fit this request"),
        (command("python3 a.py"), "python3 *", "whatever it is given"),
        (command("/usr/bin/env ls"), "/usr/bin/env *", "whatever it is given"),
        (command("git status -s"), "git *", "command of git"),
        (command("git status -s"), "git s*", "command of git"),
        (command("git -c core.pager=less log"), "git -c *", "command of git"),
        (command("/usr/bin/npm exec cowsay"), "/usr/bin/npm exec *", "whatever it is given"),
        (command("tar -xf a.tar"), "tar -xf *", "whatever it is given"),
        (file("/srv/shop/docs/a.md"), "/srv/*", "must begin with the agent's project"),
        (file("/srv/shop/docs/a.md"), "*", "must begin with the agent's project"),
        (command("make test"), "make test\n", "can be seen"),
    ],
)
def test_a_pattern_that_is_too_much_is_refused(rules: AddedRules, asked: PermissionRequest, pattern: str, words: str) -> None:
    assert words in refusal(rules, asked, pattern)


@pytest.mark.parametrize(
    ("asked", "exact", "wider"),
    [
        (command("make test"), "make test", "make *"),
        (command("make"), "make", ""),
        (command("python3 a.py"), "python3 a.py", ""),
        (command("git status -s"), "git status -s", "git status *"),
        (command("git status"), "git status", ""),
        (command("npm run test"), "npm run test", ""),
        (command("git -c core.pager=less log"), "git -c core.pager=less log", ""),
        (file("/srv/shop/docs/[x].md"), "/srv/shop/docs/[[]x].md", "/srv/shop/docs/*"),
        (file("/srv/shop/a.md"), "/srv/shop/a.md", ""),
    ],
)
def test_what_is_proposed_fits(rules: AddedRules, asked: PermissionRequest, exact: str, wider: str) -> None:
    shape = rules.shape(asked)
    assert (shape.exact, shape.wider) == (exact, wider)
    for pattern in filter(None, (exact, wider)):
        rules.check(asked, pattern)
        assert rules.would_approve(asked, pattern, asked)
    assert not rules.approves(asked)


def test_the_owner_s_own_rules_go_first(path: Path) -> None:
    rules = AddedRules(Policy([Rule(Ruling.DENY, words=("deploy",))]), str(path))
    assert rules.would_approve(command("make test"), "make *", command("make lint"))
    assert not rules.would_approve(command("make test"), "make *", command("make deploy"))


def test_files_stay_in_the_project_and_are_not_private(rules: AddedRules) -> None:
    asked = file("/srv/shop/docs/a.md")
    assert rules.would_approve(asked, "/srv/shop/docs/*", file("/srv/shop/docs/b.md"))
    assert not rules.would_approve(asked, "/srv/shop/docs/*", file("/srv/shop/docs/.env"))
    assert not rules.would_approve(asked, "/srv/shop/docs/*", file("/srv/shop/docs/b.md", "Write"))


def test_it_holds_at_once_and_at_the_next_start(rules: AddedRules, path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    before = '# mine\nqueue_capacity = 50\n\n[[permissions.rules]]\nwords = ["deploy"]\ndecision = "deny"\n'
    path.write_text(before)
    path.chmod(0o640)
    assert rules.add(command("make test"), "make *") == str(path)
    rules.add(file('/srv/shop/docs/a "b".md'), '/srv/shop/docs/a "b".md')
    assert rules.approves(command("make lint"))
    assert path.read_text().startswith(before)
    assert path.stat().st_mode & 0o777 == 0o640
    config = load_config({}, {}, project_root=str(tmp_path), home=str(path.parent), state_dir="/state", socket="/s.sock")
    assert config.permissions.judge(command("make lint")).decision is Ruling.APPROVE
    assert config.permissions.judge(command("make deploy")).decision is Ruling.DENY
    assert config.permissions.judge(file('/srv/shop/docs/a "b".md')).decision is Ruling.APPROVE


def test_a_file_is_made_where_there_is_none(rules: AddedRules, path: Path) -> None:
    rules.add(command("make test"), "make test")
    assert path.stat().st_mode & 0o777 == 0o600
    assert tomllib.loads(path.read_text())["permissions"]["rules"][0]["commands"] == ["make test"]


def test_a_file_that_would_no_longer_be_understood_is_left_alone(rules: AddedRules, path: Path) -> None:
    path.parent.mkdir()
    path.write_text("[permissions]\nrules = []\n")
    with pytest.raises(RelayError, match="Add it by hand") as raised:
        rules.add(command("make test"), "make test")
    assert 'commands = ["make test"]' in raised.value.message
    assert path.read_text() == "[permissions]\nrules = []\n"
    assert not rules.approves(command("make test"))
