"""`[permissions]` in config.toml: rules in their order, who may approve, and every mistake named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_relay.core.policy import DEFAULT_RULES, Policy, Rule, Ruling
from agent_relay.core.risk import Risk
from agent_relay.daemon.config import ConfigError, load_config
from agent_relay.protocol import tool_names
from agent_relay.protocol.requests import PermissionRequest

PAGE = (Path(__file__).parents[3] / "docs" / "permissions.md").read_text("utf-8")


class Files:
    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "project", folder / "home"
        (self.root / ".agent-relay").mkdir(parents=True)
        self.home.mkdir()
        self.project_file, self.home_file = self.root / ".agent-relay" / "config.toml", self.home / "config.toml"

    def load(self, project: str = "", home: str = "") -> Policy:
        self.project_file.write_text(project)
        self.home_file.write_text(home)
        config = load_config({}, {}, project_root=str(self.root), home=str(self.home), state_dir="/state", socket="/s.sock")
        self.notes = config.notes
        return config.permissions


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def ask(tool: str, command: str) -> PermissionRequest:
    return PermissionRequest("p1", "", tool, command, is_exact=True)


APPROVE = '[[permissions.rules]]\ntools = "bash"\ncommands = ["make test", "pytest *"]\ndecision = "approve"\nrisk = "low"\n'
DENY = '[[permissions.rules]]\nwords = ["curl"]\ndecision = "deny"\nreason = "Nothing is fetched here."\n'


def test_without_the_table_the_defaults_hold(files: Files) -> None:
    policy = files.load()
    assert policy.rules == DEFAULT_RULES
    assert policy.timeout_ms is None


def test_a_rule_is_read_whole(files: Files) -> None:
    own = Rule(Ruling.APPROVE, tools=("bash",), commands=("make test", "pytest *"), risk=Risk.LOW)
    assert files.load(home=APPROVE).rules == (own, *DEFAULT_RULES)


def test_the_owner_s_rules_come_before_the_defaults_and_the_project_s_beside_them(files: Files) -> None:
    policy = files.load(project=DENY, home=APPROVE)
    assert [rule.decision for rule in policy.rules[:1]] == [Ruling.APPROVE]
    assert policy.rules[1:] == DEFAULT_RULES
    assert [rule.decision for rule in policy.tightening] == [Ruling.DENY]
    assert policy.judge(ask("Bash", "pytest curl")).decision is Ruling.DENY


def test_a_rule_may_be_for_the_project_s_files_alone(files: Files) -> None:
    rule = files.load(home='[[permissions.rules]]\ntools = "edit"\nin_project = true\ndecision = "approve"').rules[0]
    assert rule == Rule(Ruling.APPROVE, tools=("edit",), in_project=True)


def test_a_project_cannot_approve(files: Files) -> None:
    policy = files.load(project=DENY + APPROVE)
    assert policy.rules == DEFAULT_RULES
    assert [rule.decision for rule in policy.tightening] == [Ruling.DENY]
    (note,) = files.notes
    assert "config.toml: rule 2 of permissions is ignored: only rules in" in note


def test_what_cannot_be_used_of_a_project_s_rules_is_noted_and_the_rest_holds(files: Files) -> None:
    policy = files.load(project='[[permissions.rules]]\ndecision = "deny"\ncommands = []\n' + DENY)
    assert [rule.decision for rule in policy.tightening] == [Ruling.DENY]
    assert "rule 1 of permissions has an empty condition" in files.notes[0]
    assert files.load(project='[permissions]\ntimeout = "soon"\n').timeout_ms is None
    assert "timeout" in files.notes[0]


def test_a_project_s_rule_never_makes_anything_laxer(files: Files) -> None:
    """A rule for a person in place of one that denies would, and so would a lower risk."""
    everything = '[[permissions.rules]]\ntools = "*"\ndecision = "human"\nrisk = "low"\nreason = "Quite harmless, go on."\n'
    policy = files.load(project=everything, home=DENY + APPROVE)
    denied = policy.judge(ask("Bash", "curl x"))
    assert (denied.decision, denied.reason) == (Ruling.DENY, "Nothing is fetched here.")
    destructive = policy.judge(ask("Bash", "rm -rf build"))
    assert (destructive.decision, destructive.risk) == (Ruling.HUMAN, Risk.CRITICAL)
    assert destructive.reason != "Quite harmless, go on."
    assert policy.judge(ask("Bash", "make test")).decision is Ruling.HUMAN


def test_one_file_for_both_is_the_user_s(tmp_path: Path) -> None:
    home = tmp_path / ".agent-relay"
    home.mkdir()
    (home / "config.toml").write_text(APPROVE)
    config = load_config({}, {}, project_root=str(tmp_path), home=str(home), state_dir="/state", socket="/s.sock")
    assert len(config.permissions.rules) == len(DEFAULT_RULES) + 1


@pytest.mark.parametrize(
    ("project", "home", "time_ms"),
    [("", '"10m"', 600_000), ("5000", "", 5_000), ('"1m"', '"10m"', 60_000), ('"10m"', '"1m"', 60_000)],
)
def test_the_shorter_time_counts(files: Files, project: str, home: str, time_ms: int) -> None:
    tables = [f"[permissions]\ntimeout = {text}\n" if text else "" for text in (project, home)]
    assert files.load(*tables).timeout_ms == time_ms


def test_the_example_of_the_page_is_read(files: Files) -> None:
    example = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    policy = files.load(home=example)
    assert len(policy.rules) == len(DEFAULT_RULES) + example.count("[[permissions.rules]]")
    assert policy.timeout_ms == 600_000
    assert policy.judge(ask("Bash", "pytest tests/unit")).decision is Ruling.APPROVE
    assert policy.judge(ask("Bash", "pytest; ls")).decision is Ruling.HUMAN
    assert policy.judge(ask("WebFetch", "")).decision is Ruling.DENY


def test_the_page_names_every_tool_and_every_default() -> None:
    words = set(re.findall(r"`([^`\n]+)`", PAGE))
    assert {name for names in tool_names._NAMES.values() for name in names} <= words
    assert {pattern for rule in DEFAULT_RULES for pattern in (*rule.tools, *rule.commands, *rule.words)} <= words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("permissions = 5", "permissions"),
        ("[permissions]\nrule = []", "rule"),
        ('[[permissions.rules]]\ntools = "bash"', "decision"),
        ('[[permissions.rules]]\ndecision = "allow"', "decision"),
        ('[[permissions.rules]]\ndecision = "deny"\ntool = "bash"', "tool"),
        ('[[permissions.rules]]\ndecision = "deny"\nrisk = "huge"', "risk"),
        ('[[permissions.rules]]\ndecision = "deny"\ncommands = [1]', "commands"),
        ('[[permissions.rules]]\ndecision = "deny"\ncommands = []', "rule 1 .*empty"),
        ('[[permissions.rules]]\ndecision = "deny"\ncommands = [""]', "rule 1 .*empty"),
        ('[[permissions.rules]]\ndecision = "approve"\ntools = "bash"\ncommands = []', "rule 1 .*empty"),
        ('[[permissions.rules]]\ndecision = "approve"', "rule 1 .*without naming tools"),
        ('[[permissions.rules]]\ndecision = "approve"\ntools = "bash"\nwords = "make"', "rule 1 .*words"),
        ('[permissions]\ntimeout = "soon"', "timeout"),
        ("[permissions]\ntimeout = 0", "timeout"),
        ("[permissions]\ntimeout = true", "timeout"),
    ],
)
def test_a_mistake_stops_the_start_and_is_named(files: Files, content: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        files.load(home=content)
    assert str(files.home_file) in str(raised.value)
    assert str(raised.value).endswith(".")
