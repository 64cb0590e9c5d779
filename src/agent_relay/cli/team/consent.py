"""The owner's word on a team's file: asked once for every change of it, and kept where the project cannot write it.

The record has the hash of the bytes that were shown. What `up` has made, so that `down` takes away that and nothing else, is
beside it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec
import typer
from msgspec import Struct

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.daemon.directories import make_private_directory, write_private_file
from agent_relay.protocol.access_rules import describe_rule
from agent_relay.protocol.clis import ACP
from agent_relay.protocol.shadows import describe_traffic

if TYPE_CHECKING:
    from agent_relay.cli.team.team_file import AgentTable, TeamFile

RECORD_FILE = "team.json"
_SHOWN_TASK = 2_000  # characters; of a longer one it is said how much is not shown


class Record(Struct, omit_defaults=True):
    confirmed: str = ""  # the hash of the last file that the owner confirmed
    joined: list[tuple[str, str]] = []  # channels and agents that `up` brought together
    worktrees: list[str] = []  # folders that `up` made


def read_record(state_dir: str) -> Record:
    """An empty one where there is none; one that cannot be read confirms nothing."""
    try:
        with open(os.path.join(state_dir, RECORD_FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return Record()


def write_record(state_dir: str, record: Record) -> None:
    make_private_directory(state_dir)
    write_private_file(os.path.join(state_dir, RECORD_FILE), msgspec.json.encode(record).decode() + "\n")


def ask_owner(file: TeamFile, *, before: str, yes: bool, as_json: bool) -> None:
    """Shows what the file would do, and asks. Raises Failure where the owner does not confirm it."""
    screen = Screen(sys.stderr)  # of --json, standard output is for programs
    _show(screen, file, is_changed=bool(before))
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise Failure("Nothing was started: this file is new or changed. Read the summary, then confirm it with --yes.")
    if not typer.confirm("Start this team?", err=True):
        raise Failure("Nothing was started.")


def _show(screen: Screen, file: TeamFile, *, is_changed: bool) -> None:
    team = file.team
    word = "has changed" if is_changed else "is new"
    screen.line((clean_line(file.path), "bold"), f" {word}. It would do this on your machine, as you:")
    for agent in team.agents:
        _show_agent(screen, agent)
    for channel in team.channels:
        topic = f", topic: {clean_line(channel.topic)}" if channel.topic else ""
        members = clean_line(", ".join(channel.members)) or "nobody"
        screen.line("  channel ", (clean_line(channel.channel), "cyan"), f": {members}{topic}")
    for each in team.shadows:
        traffic = describe_traffic(each.traffic, each.of)
        screen.line("  copies to ", (clean_line(each.shadow), "bold cyan"), clean_line(f" of what {traffic}"))
    for rule in team.rules:
        screen.line("  rule ", (clean_line(describe_rule(rule)), "yellow"))
    if not team.rules:
        screen.line("  no rules: every agent may write to every other")


def _show_agent(screen: Screen, agent: AgentTable) -> None:
    facts = [
        f"model {agent.model}" if agent.model else "",
        f"permission mode {agent.permission_mode}" if agent.permission_mode else "",
        "by the Agent Client Protocol" if agent.transport == ACP else "",
        f"branch {agent.tree.branch} in a worktree" if agent.tree else "",
        f"started again up to {count(agent.restarts, 'time')} after crashes" if agent.restarts else "",
        f"at most ${agent.budget:g}" if agent.budget is not None else "",
        f"variables {', '.join(f'{name}={value}' for name, value in agent.environment.items())}" if agent.environment else "",
    ]
    said = ", ".join(fact for fact in facts if fact)
    screen.line("  run ", (clean_line(agent.cli), "bold"), " as ", (clean_line(agent.name), "bold cyan"),
                clean_line(f": {said}") if said else "")  # fmt: skip
    task = agent.first_message
    if task:
        more = len(task) - _SHOWN_TASK
        screen.block(clean_block(task[:_SHOWN_TASK]), 6)
        if more > 0:
            screen.block(f"… and {count(more, 'more character')}: read the file before you confirm it", 6, "yellow")
