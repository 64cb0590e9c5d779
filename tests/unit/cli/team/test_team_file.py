"""`.agent-relay/team.toml`, read as a stranger's: what it may say, what it is told, and what is never done with it."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_relay.cli.failures import Failure
from agent_relay.cli.team.team_file import Team, make_schema, parse_team, read_team, team_path

ROOT = Path(__file__).parents[4]
SMALL = '[[agents]]\nname = "Bob"\ncli = "claude"\n'
WHOLE = """
[[agents]]
name = "Bob"
cli = "claude"
model = "opus"
role = "reviewer"
task = "Look."
worktree = "review/bob"
permission_mode = "plan"
budget = 2.5
restart = "on-crash"
restart_limit = 5
environment = { ANTHROPIC_MODEL = "x" }

[[agents]]
name = "Ann"
cli = "codex"
worktree = { branch = "ann", folder = "of-ann" }

[[channels]]
name = "#dev"
members = ["bob", "Ann"]

[[rules]]
effect = "deny"
action = "send"
from = ["Bob"]
to = ["#dev", "topic:code.>"]
reason = "Not now."
"""


def parse(text: str) -> Team:
    return parse_team(text.encode(), "team.toml")


def refusal(text: str) -> str:
    with pytest.raises(Failure) as raised:
        parse(text)
    return raised.value.sentence


def write(folder: Path, content: bytes | str) -> Path:
    path = Path(team_path(str(folder)))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_everything_that_can_be_said() -> None:
    team = parse(WHOLE)
    bob, ann = team.agents
    assert bob.tree is not None
    assert ann.tree is not None
    assert (bob.tree.branch, bob.tree.folder, bob.restarts) == ("review/bob", "Bob", 5)
    assert (ann.tree.branch, ann.tree.folder, ann.restarts) == ("ann", "of-ann", 0)
    assert bob.first_message == "Your role: reviewer\n\nLook."
    assert [channel.channel for channel in team.channels] == ["#dev"]
    assert parse(SMALL).agents[0].first_message is None


def test_a_changed_entry_has_another_mark_and_the_same_one_has_the_same() -> None:
    mark = parse(SMALL).agents[0].mark
    assert parse("# a remark\n" + SMALL).agents[0].mark == mark
    assert parse(SMALL + 'task = "x"\n').agents[0].mark != mark


def test_the_hash_is_of_the_bytes_that_were_read(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    assert read_team(str(tmp_path)).sha256 == hashlib.sha256(SMALL.encode()).hexdigest()


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ('[[agents]]\nname = "a/b"\ncli = "x"', 5, "agents[1].name"),
        ('[[agents]]\nname = "../x"\ncli = "x"', 5, "agents[1].name"),
        ('[[agents]]\nname = "system"\ncli = "x"', 5, "reserved"), ('[[agents]]\nname = "bob"\ncli = "x"', 5, "used twice"),
        ('[[agents]]\nname = "A"', 4, "cli"), ("model = 7", 4, "agents[0].model"), ('colour = "red"', 1, "colour"),
        ('worktree = "../../etc"', 4, "agents[0].worktree"), ('worktree = "a..b"', 4, "branch"), ('worktree = "-f"', 4, "branch"),
        ('worktree = "a b"', 4, "branch"), ('worktree = "x.lock"', 4, "branch"), ('worktree = ""', 4, "branch"),
        ('worktree = { branch = "a", folder = "/etc" }', 4, "folder"),
        ('worktree = { branch = "a", folder = ".." }', 4, "folder"),
        ('worktree = { branch = "a", folder = "a/b" }', 4, "folder"), ('worktree = { branch = "a", more = 1 }', 4, "more"),
        ('restart = "always"', 4, "agents[0].restart"), ("restart_limit = 0", 4, "agents[0].restart_limit"),
        ('shadows = ["Ann"]', 4, "no agent in this file is called"), ('shadows = ["Bob"]', 4, "itself"),
        ('shadows = ["Bob:sideways"]', 4, "NAME:incoming"), ("budget = 0", 4, "agents[0].budget"),
        ("budget = nan", 4, "agents[0].budget"),
        ('[[channels]]\nname = "a b"', 5, "channels[0].name"),
        ('[[channels]]\nname = "dev"\nmembers = ["Bobb"]', 6, "did you mean Bob"),
        ('[[channels]]\nname = "dev"\ntopic = "a\\nb"', 6, "one line"),
        ('[[channels]]\nname = "dev"\nat_leisure = ["Bob"]', 6, "add it to `members`"),
        ('[[channels]]\nname = "d"\n[[channels]]\nname = "#D"', 7, "used twice"),
        ('[[rules]]\neffect = "deny"\naction = "fly"', 6, "rules[0].action"),
        ('[[rules]]\neffect = "deny"\naction = "send"\nto = "a/b"', 4, "`to` cannot be"),
        ('worktree = { branch = "b", folder = "f" }\n[[agents]]\nname = "B"\ncli = "x"\nworktree = {branch = "c", folder = "F"}',
         8, "used twice"),
        ('task = """\n' + "x" * 20_001 + '"""', 4, "agents[0].task"), ("[other]\nx = 1", 1, "other"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line_its_key_and_the_way_out(more: str, line: int, said: str) -> None:
    sentence = refusal(f"{SMALL}{more}\n")
    assert said in sentence
    assert sentence.startswith(f"team.toml, line {line}: "), sentence


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"agents = 1", b"[[agents]", b"[" * 100_000, b"a" * 200_000, b"agents = [" + b"[" * 5_000, b"agents = []",
     b"[agents]\nname = 'x'", b"\0"],
)  # fmt: skip
def test_what_is_no_team_at_all_is_a_failure_and_no_crash(content: bytes) -> None:
    with pytest.raises(Failure):
        parse_team(content, "team.toml")


def test_too_many_of_anything() -> None:
    agents = "".join(f'[[agents]]\nname = "A{number}"\ncli = "x"\n' for number in range(51))
    assert "length <= 50" in refusal(agents)
    assert "length <= 200" in refusal(SMALL + '[[rules]]\neffect = "deny"\naction = "send"\n' * 201)


def test_hostile_files_are_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text(SMALL)
    project = tmp_path / "project"
    (project / ".agent-relay").mkdir(parents=True)
    path = Path(team_path(str(project)))

    def refused() -> str:
        with pytest.raises(Failure) as raised:
            read_team(str(project))
        return raised.value.sentence

    assert "There is no" in refused()
    path.symlink_to(outside)
    assert "links out of the project" in refused()
    path.unlink()
    os.mkfifo(path)
    assert "not a regular file" in refused()
    path.unlink()
    path.write_bytes(b"#" * 300_000)
    assert "larger than" in refused()
    path.unlink()
    path.mkdir()
    assert refused()


def test_words_of_the_file_cannot_move_the_cursor() -> None:
    assert "\x1b" not in refusal('[[agents]]\nname = "\\u001b[2J"\ncli = "x"\n')


def test_the_schema_is_published_and_says_what_the_reader_says() -> None:
    published = json.loads((ROOT / "docs" / "api" / "team.schema.json").read_text("utf-8"))
    assert published == json.loads(msgspec.json.encode(make_schema()))
    assert check(published, published, tomllib.loads(WHOLE)) == []
    assert check(published, published, tomllib.loads(SMALL + "model = 7\n")) != []
    assert check(published, published, tomllib.loads(SMALL + "colour = 7\n")) != []
    assert check(published, published, {"agents": []}) != []


def check(whole: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    """Just enough of JSON Schema for ours."""
    if "$ref" in schema:
        schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return [] if any(not check(whole, each, value) for each in schema["anyOf"]) else [f"{value!r} fits nothing"]
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": float, "null": type(None)}
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return [f"{value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{value!r} is none of {schema['enum']}"]
    found = []
    if isinstance(value, list):
        found = [problem for each in value for problem in check(whole, schema["items"], each)]
        found += [] if schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 10**9) else ["length"]
    if isinstance(value, dict) and "properties" in schema:
        found = [f"{name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, each in value.items():
            known = schema["properties"].get(name)
            found += [f"{name} is unknown"] if known is None else check(whole, known, each)
    return found
