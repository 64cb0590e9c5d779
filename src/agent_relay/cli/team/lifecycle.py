"""A team started and ended. Both are idempotent: what is as it should be is left alone, what failed is tried the next time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_relay.cli.failures import Failure
from agent_relay.cli.team.consent import Record, read_record, write_record
from agent_relay.cli.team.members import is_live, newest_sessions, team_sessions, will_return
from agent_relay.cli.team.worktrees import make_worktree, remove_worktree, worktree_path
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.shadows import describe_traffic
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.views import AgentsView

if TYPE_CHECKING:
    from agent_relay.cli.team.team_file import AgentTable, ChannelTable, TeamFile
    from agent_relay.sdk.locate import Place

Tell = Callable[["Step"], None]


class Step(Struct, frozen=True, omit_defaults=True):
    """One thing that was done, or could not be."""

    subject: str  # an agent, a channel, a folder or `rules`
    outcome: str  # started, restarted, running, joined, released, removed, left, kept, set, failed
    note: str = ""

    @property
    def is_change(self) -> bool:
        return self.outcome not in {"running", "kept", "failed"}


async def bring_up(place: Place, file: TeamFile, relay: RelayClient, tell: Tell) -> None:
    """The owner has confirmed the file. `relay` is a connection under the owner's name: tasks come from there."""
    view = await relay.agents()
    await _set_rules(file, relay, view, tell)
    record = read_record(place.state_dir)
    if record.confirmed != file.sha256:  # only now: the daemon took it from the owner, and not from an agent's terminal
        record.confirmed = file.sha256
        write_record(place.state_dir, record)
    sessions = newest_sessions(view)
    for agent in file.team.agents:
        try:
            await _bring_up_agent(place, relay, agent, sessions.get(fold_name(agent.name)), view, record, tell)
        except (Failure, RelayError) as error:
            tell(Step(agent.name, "failed", error.sentence if isinstance(error, Failure) else error.message))
    for session in team_sessions(view):
        if is_live(session) and file.team.find(str(session["agent"])) is None:
            name = str(session["agent"])
            tell(Step(name, "kept", f"it is no longer in the file; to stop it: agent-relay release {name}"))
    view = await relay.agents()
    for channel in file.team.channels:
        await _join(place, relay, channel, view, record, tell)


async def _set_rules(file: TeamFile, relay: RelayClient, view: AgentsView, tell: Tell) -> None:
    """Before anybody starts who could break them."""
    if (view.server.get("team") or {}).get("sha256") != file.sha256:
        await relay.set_team(file.sha256, file.team.rules, file.team.shadows)
        tell(Step("rules", "set", f"{len(file.team.rules)} in force"))
        for each in file.team.shadows:
            tell(Step(each.shadow, "set", f"gets a copy of what {describe_traffic(each.traffic, each.of)}"))


async def _bring_up_agent(
    place: Place, relay: RelayClient, agent: AgentTable, session: dict[str, object] | None, view: AgentsView, record: Record,
    tell: Tell,
) -> None:  # fmt: skip
    known = view.find(agent.name)
    is_ours = session is not None and bool(session.get("team"))
    if (is_live(session) and not is_ours) or (known is not None and known.connected and not is_live(session)):
        tell(Step(agent.name, "kept", "it runs already, started by somebody else"))
        return
    is_same = session is not None and session.get("team") == agent.mark
    if is_same and (is_live(session) or will_return(session)):
        tell(Step(agent.name, "running", "" if is_live(session) else "it crashed and is about to be started again"))
        return
    folder = _find_folder(place, agent, record, tell)
    was_live = is_live(session)
    if was_live:
        await relay.release(agent.name, "The team's file has changed.")
    await relay.spawn(
        agent.name, agent.cli, agent.first_message, cwd=folder, environment=agent.environment,
        permission_mode=agent.permission_mode, model=agent.model, role=agent.role, team=agent.mark, restarts=agent.restarts,
        budget_usd=agent.budget, transport=agent.transport,
    )  # fmt: skip
    tell(Step(agent.name, "restarted" if was_live else "started", "its entry has changed" if was_live else ""))


def _find_folder(place: Place, agent: AgentTable, record: Record, tell: Tell) -> str | None:
    """None: the project's own, on whichever host it is started."""
    tree = agent.tree
    if tree is None:
        return None
    path = worktree_path(place.root, tree)
    if make_worktree(place.root, tree):
        tell(Step(path, "made", f"branch {tree.branch}"))
        if path not in record.worktrees:
            record.worktrees.append(path)
            write_record(place.state_dir, record)
    return path


async def _join(
    place: Place, relay: RelayClient, channel: ChannelTable, view: AgentsView, record: Record, tell: Tell
) -> None:  # fmt: skip
    leisurely = {fold_name(name) for name in channel.at_leisure}
    for member in channel.members:
        known = view.find(member)
        if known is None:
            continue  # that it could not be started was told
        at_leisure = known.name.lower() in leisurely
        if any(fold_name(each) == fold_name(channel.channel) for each in known.channels):
            if at_leisure != any(fold_name(each) == fold_name(channel.channel) for each in known.at_leisure):
                await relay.join(channel.channel, agent=known.name, at_leisure=at_leisure)
            continue
        record.joined.append((channel.channel, known.name))
        write_record(place.state_dir, record)  # first: what is joined is always left again
        try:
            await relay.join(channel.channel, agent=known.name, at_leisure=at_leisure)
            tell(Step(channel.channel, "joined", known.name))
        except RelayError as error:
            tell(Step(channel.channel, "failed", f"{known.name} could not join: {error.message}"))
    await _set_topic(relay, channel, view, tell)


async def _set_topic(relay: RelayClient, channel: ChannelTable, view: AgentsView, tell: Tell) -> None:
    now = {fold_name(name): line for name, line in (view.server.get("topic_lines") or {}).items()}
    if channel.topic is None or now.get(fold_name(channel.channel), "") == " ".join(channel.topic.split()):
        return
    try:
        await relay.set_topic_line(channel.channel, channel.topic)
        tell(Step(channel.channel, "set", f"topic: {channel.topic}"))
    except RelayError as error:  # it has no members, so there is no such channel
        tell(Step(channel.channel, "failed", f"its topic could not be set: {error.message}"))


async def bring_down(place: Place, relay: RelayClient, tell: Tell) -> None:
    """Takes away what `up` has made, and nothing else."""
    view = await relay.agents()
    going = [session for session in team_sessions(view) if is_live(session) or will_return(session)]
    await asyncio.gather(*(_release(relay, str(session["agent"]), tell) for session in going))
    record = read_record(place.state_dir)
    for channel, name in record.joined:
        try:
            await relay.leave(channel, agent=name)
            tell(Step(channel, "left", name))
        except RelayError as error:
            if error.code not in {ErrorCode.AGENT_NOT_FOUND, ErrorCode.CHANNEL_NOT_FOUND}:  # gone with its name
                tell(Step(channel, "failed", f"{name} could not leave: {error.message}"))
    kept = []
    for path in record.worktrees:
        why = remove_worktree(place.root, path)
        tell(Step(path, "kept" if why else "removed", why))
        if why:
            kept.append(path)
    if record.joined or record.worktrees != kept:
        record.joined, record.worktrees = [], kept
        write_record(place.state_dir, record)
    if (view.server.get("team") or {}).get("sha256"):
        await relay.set_team("", [])
        tell(Step("rules", "removed"))


async def _release(relay: RelayClient, name: str, tell: Tell) -> None:
    try:
        await relay.release(name, "The team was taken down.")
        tell(Step(name, "released"))
    except RelayError as error:
        if error.details.get("reason") != "not_spawned":  # it ended meanwhile
            tell(Step(name, "failed", error.message))
