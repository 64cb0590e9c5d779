"""`.agent-relay/team.toml`: the agents of a team, their channels, and the rules between them.

The file comes with the project, so nothing in it is believed: it is read once, with care, and every value is checked before
anything else happens. Its hash is of the very bytes that were read; what the owner confirms is what is used.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.daemon.config_files import LeftOut, read_with_care
from agent_relay.protocol.access_rules import MAX_RULES, AccessRule
from agent_relay.protocol.channels import MAX_TOPIC_LINE
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import CHANNEL_MARK, check_agent_name, did_you_mean, fold_name, is_channel, show
from agent_relay.protocol.places import PROJECT_DIRECTORY
from agent_relay.protocol.shadows import Shadowing, parse_shadowing
from agent_relay.terminal.profiles.line_numbers import line_of

TEAM_FILE = "team.toml"
MAX_AGENTS, MAX_CHANNELS = 50, 50
DEFAULT_RESTARTS = 3

_Shadowed = Annotated[str, Meta(min_length=1, max_length=80, description="A name, or NAME:incoming or NAME:outgoing.")]
_Name = Annotated[str, Meta(min_length=1, max_length=64)]
_BRANCH = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)  # one name: nothing that leads anywhere else
_WHERE = " - at `$"  # before the place that msgspec names at the end


class WorktreeTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A git worktree of the agent's own, below `.agent-relay/worktrees`."""

    branch: Annotated[str, Meta(description="Created from the current commit if it does not exist.")]
    folder: Annotated[str, Meta(description="One folder name; by default the agent's name.")] | None = None


class AgentTable(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: _Name
    cli: Annotated[str, Meta(min_length=1, max_length=200, description="claude, codex, gemini, …, or one of `spawn_allow`.")]
    model: Annotated[str, Meta(min_length=1, max_length=128, description="As the CLI calls it.")] | None = None
    task: Annotated[str, Meta(min_length=1, max_length=20_000, description="Its first message, from you.")] | None = None
    role: Annotated[str, Meta(min_length=1, max_length=200, description="Said before the task, and shown in lists.")] | None = (
        None
    )
    worktree: (
        Annotated[str, Meta(description="A branch: the agent works in a git worktree of its own.")] | WorktreeTable | None
    ) = None
    permission_mode: Annotated[str, Meta(min_length=1, max_length=64, description="One of the CLI's own modes.")] | None = None
    transport: Annotated[
        Literal["terminal", "acp"], Meta(description="`acp`: by the Agent Client Protocol, which the CLI must speak.")
    ] = "terminal"
    restart: Annotated[Literal["never", "on-crash"], Meta(description="Whether a crash starts it again.")] = "never"
    restart_limit: Annotated[int, Meta(ge=1, le=100, description="How often, at most.")] = DEFAULT_RESTARTS
    budget: Annotated[float, Meta(gt=0, le=1_000_000, description="US dollars; at that cost, it is released.")] | None = None
    environment: Annotated[dict[str, str], Meta(max_length=50, description="Variables that `spawn_environment` allows.")] = {}
    shadows: Annotated[
        tuple[_Shadowed, ...], Meta(max_length=MAX_AGENTS, description="Agents of this file whose messages it gets copies of.")
    ] = ()

    @property
    def tree(self) -> WorktreeTable | None:
        """With its folder."""
        if self.worktree is None:
            return None
        given = WorktreeTable(self.worktree) if isinstance(self.worktree, str) else self.worktree
        return WorktreeTable(given.branch, given.folder or self.name)

    @property
    def first_message(self) -> str | None:
        if self.role is None:
            return self.task
        return f"Your role: {self.role}" + (f"\n\n{self.task}" if self.task else "")

    @property
    def restarts(self) -> int:
        return self.restart_limit if self.restart == "on-crash" else 0

    @property
    def mark(self) -> str:
        """Tells this entry from a changed one; kept with the running agent. Its shadows change without it."""
        return hashlib.sha256(msgspec.json.encode(replace(self, shadows=()), order="deterministic")).hexdigest()[:16]


class ChannelTable(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=65, description="With or without the #.")]
    topic: Annotated[str, Meta(max_length=MAX_TOPIC_LINE, description="Its topic line: what it is for.")] | None = None
    at_leisure: Annotated[
        tuple[_Name, ...], Meta(max_length=MAX_AGENTS, description="Members that only mentions such as @Name wake.")
    ] = ()
    members: Annotated[tuple[_Name, ...], Meta(max_length=MAX_AGENTS, description="Agents of this file.")] = ()

    @property
    def channel(self) -> str:
        return self.name if self.name.startswith(CHANNEL_MARK) else CHANNEL_MARK + self.name


class Team(Struct, frozen=True, forbid_unknown_fields=True):
    agents: Annotated[tuple[AgentTable, ...], Meta(min_length=1, max_length=MAX_AGENTS)]
    channels: Annotated[tuple[ChannelTable, ...], Meta(max_length=MAX_CHANNELS)] = ()
    rules: Annotated[tuple[AccessRule, ...], Meta(max_length=MAX_RULES)] = ()

    def find(self, name: str) -> AgentTable | None:
        return next((agent for agent in self.agents if fold_name(agent.name) == fold_name(name)), None)

    @property
    def shadows(self) -> tuple[Shadowing, ...]:
        return tuple(parse_shadowing(agent.name, of) for agent in self.agents for of in agent.shadows)


class TeamFile(Struct, frozen=True):
    """A team, and the bytes it was read from, as their hash."""

    path: str
    sha256: str
    team: Team


def team_path(root: str) -> str:
    return os.path.join(root, PROJECT_DIRECTORY, TEAM_FILE)


def read_team(root: str) -> TeamFile:
    """Raises Failure with a sentence that names the file, the line, the key and the fix."""
    path = team_path(root)
    try:
        content = read_with_care(root, path)
    except (FileNotFoundError, NotADirectoryError):
        raise Failure(
            f"There is no {clean_line(path)}. docs/teams.md shows how to write one: [[agents]] with a name and a cli is enough."
        ) from None
    except LeftOut as reason:
        raise Failure(clean_line(str(reason).replace(" is ignored: ", " cannot be used: "))) from None
    except OSError as error:
        raise Failure(clean_line(f"{path} cannot be read: {error.strerror or error}.")) from None
    return TeamFile(path, hashlib.sha256(content).hexdigest(), parse_team(content, path))


def parse_team(content: bytes, path: str) -> Team:
    try:
        text = content.decode()
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # no text, no TOML, or nested too deeply
        raise Failure(clean_line(f"{path} is not valid TOML: {str(error) or 'it is nested too deeply'}."), USAGE) from None
    try:
        team = msgspec.convert(found, Team)
        _check(team)
    except (msgspec.ValidationError, _Wrong) as error:
        sentence, where = _split(str(error))
        line = line_of(text, where) if where else 1
        at = f"{where}: " if where else ""
        raise Failure(clean_line(f"{path}, line {line}: {at}{sentence}."), USAGE) from None
    return team


class _Wrong(ValueError):  # noqa: N818 - named by the condition
    """A value that cannot be meant; the text ends as msgspec's does."""

    def __init__(self, sentence: str, where: str) -> None:
        super().__init__(f"{sentence} - at `$.{where}`")


def _split(text: str) -> tuple[str, str]:
    said, found, place = text.rpartition(_WHERE)
    return (said, place.removesuffix("`").removeprefix(".")) if found else (text, "")


def _check(team: Team) -> None:
    """All that types cannot say. Raises _Wrong."""
    for number, agent in enumerate(team.agents):
        where = f"agents[{number}]"
        try:
            check_agent_name(agent.name)
        except RelayError as error:
            raise _Wrong(error.message.rstrip("."), f"{where}.name") from None
        if tree := agent.tree:
            _check_tree(tree, f"{where}.worktree")
        for of in agent.shadows:
            _check_shadowed(team, agent, of, f"{where}.shadows")
    _check_unique((agent.name for agent in team.agents), "agents", "name")
    _check_unique((agent.tree.folder or "" if agent.tree else f"/{agent.name}" for agent in team.agents), "agents", "worktree")
    _check_unique((agent.tree.branch if agent.tree else f"//{agent.name}" for agent in team.agents), "agents", "worktree")
    for number, channel in enumerate(team.channels):
        if not is_channel(channel.channel):
            raise _Wrong(f"{show(channel.name)} is not a channel: use letters, digits, _, . or -", f"channels[{number}].name")
        for member in channel.members:
            _check_member(team, member, "members are", f"channels[{number}].members")
        for name in channel.at_leisure:
            if fold_name(name) not in map(fold_name, channel.members):
                raise _Wrong(
                    f"{show(name)} is not a member of {channel.channel}; add it to `members`", f"channels[{number}].at_leisure"
                )
        if channel.topic is not None and not channel.topic.isprintable():
            raise _Wrong("a topic line is one line", f"channels[{number}].topic")
    _check_unique((channel.channel for channel in team.channels), "channels", "name")


def _check_shadowed(team: Team, agent: AgentTable, of: str, where: str) -> None:
    try:
        shadowing = parse_shadowing(agent.name, of)
    except ValueError:
        raise _Wrong(f"{show(of)} cannot be shadowed: use a name, NAME:incoming or NAME:outgoing", where) from None
    _check_member(team, shadowing.of, "it can shadow", where)
    if fold_name(shadowing.of) == fold_name(agent.name):
        raise _Wrong(f"{agent.name} cannot shadow itself; remove it here", where)


def _check_member(team: Team, name: str, what: str, where: str) -> None:
    if team.find(name) is None:
        near = did_you_mean(name, [agent.name for agent in team.agents])
        hint = f"; did you mean {near[0]}?" if near else f"; {what} agents of this file"
        raise _Wrong(f"no agent in this file is called {show(name)}{hint}", where)


def _check_tree(tree: WorktreeTable, where: str) -> None:
    branch = tree.branch
    is_odd = ".." in branch or "//" in branch or branch.endswith((".", "/", ".lock")) or "/." in branch or ".lock/" in branch
    if _BRANCH.fullmatch(branch) is None or is_odd:
        raise _Wrong(f"{show(branch)} cannot be a branch: use letters, digits, ., _, - and / as in review/auth", where)
    if _FOLDER.fullmatch(tree.folder or "") is None:
        raise _Wrong(
            f"{show(tree.folder or '')} cannot be the worktree's folder: use one name, without slashes; it lies in "
            f"{PROJECT_DIRECTORY}/worktrees", where,
        )  # fmt: skip


def _check_unique(values: Iterable[str], table: str, key: str) -> None:
    seen: set[str] = set()
    for number, value in enumerate(values):
        if fold_name(value) in seen:
            raise _Wrong(f"{show(value)} is used twice; each needs its own", f"{table}[{number}].{key}")
        seen.add(fold_name(value))


def make_schema() -> dict[str, Any]:
    """The JSON Schema that docs/ publishes."""
    schema = msgspec.json.schema(Team)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"{PROJECT_DIRECTORY}/{TEAM_FILE}", **schema}


if __name__ == "__main__":  # `make docs`
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(make_schema()), indent=2).decode() + "\n")
