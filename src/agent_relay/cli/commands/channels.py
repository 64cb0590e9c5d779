"""`join`, `leave`, `channels` and `topic`: who hears what is written to a channel, and what it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, agent_option, find_place
from agent_relay.cli.output.formats import count, format_time, now_ms
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.wrapper.outbox_commands import ask_through, own_outbox
from agent_relay.protocol.channels import name_attention
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import CHANNEL_MARK, did_you_mean, fold_name, is_channel

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import ChannelInfo

Channel = Annotated[str, typer.Argument(metavar="CHANNEL", help="Such as '#dev'; the # may be left out.", show_default=False)]
TopicText = Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The new topic line.", show_default=False)]
AtLeisure = Annotated[
    bool | None, typer.Option("--at-leisure/--awake", help="Whether only mentions wake the agent.", show_default=False)
]
Agent = Annotated[str | None, agent_option("--as", "The agent; by default the one you run this in, else you.")]


def join(
    channel: Channel, agent: Agent = None, at_leisure: AtLeisure = None, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """Join a channel. The first to join creates it.

    From then on the agent also gets messages to the channel; they wait while it is offline. With --at-leisure only messages that
    mention it, such as "@Bob", wake it; others come with the next one that does.
    """
    return _change("join", channel, agent, as_json, socket, state_dir, at_leisure)


def leave(
    channel: Channel, agent: Agent = None, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:  # fmt: skip
    """Leave a channel, even one joined by default. Messages sent before that are still delivered."""
    return _change("leave", channel, agent, as_json, socket, state_dir)


def topic(
    channel: Channel, text: TopicText = None, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:  # fmt: skip
    """Show a channel's topic line, or set it: one line that says what the channel is for. An empty text removes it."""
    from agent_relay.cli.project.link import observe, run

    name = _name_of(channel)

    async def ask() -> str:
        async with observe(find_place(socket, state_dir)) as relay:
            if text is not None:
                await relay.set_topic_line(name, text)
            known = await relay.channels()
            found = next((each for each in known if fold_name(each.name) == fold_name(name)), None)
            if found is None:
                near = did_you_mean(name, [each.name for each in known])
                raise RelayError(ErrorCode.CHANNEL_NOT_FOUND, f"There is no channel {name}.", channel=name, did_you_mean=near)
            return found.topic_line

    line = run(ask())
    screen = Screen()
    if as_json:
        screen.json({"channel": name, "topic_line": line})
    else:
        screen.line((name, "bold cyan"), "  ", clean_line(line) or ("no topic line", "dim"))
    return 0


def channels(as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """List the channels, with their members and number of messages."""
    from agent_relay.cli.project.link import observe, run

    async def ask() -> list[ChannelInfo]:
        async with observe(find_place(socket, state_dir)) as relay:
            return await relay.channels()

    found = run(ask())
    screen = Screen()
    if as_json:
        shown = [
            {
                "name": each.name,
                "topic_line": each.topic_line,
                "members": list(each.members),
                "messages": each.messages,
                "last_at": each.last_at,
            }
            for each in found
        ]
        screen.json({"channels": shown, "next_cursor": None})
        return 0
    for each in found:
        _show(screen, each)
    if not found:
        screen.line(("There are no channels. `agent-relay join dev` creates one.", "dim"))
    return 0


def _show(screen: Screen, channel: ChannelInfo) -> None:
    members = ", ".join(channel.members) or "nobody"
    said = count(channel.messages, "message") + (f", last {format_time(channel.last_at, now_ms())}" if channel.last_at else "")
    screen.line((clean_line(channel.name), "bold cyan"), "  ", (said, "dim"))
    if channel.topic_line:
        screen.block(clean_line(channel.topic_line))
    screen.block(clean_line(members))


def _name_of(channel: str) -> str:
    name = channel if channel.startswith(CHANNEL_MARK) else CHANNEL_MARK + channel
    if not is_channel(name):
        raise Failure(clean_line(f"{name} is not a valid channel: use # and a name of letters, digits, '_', '.' or '-'."), USAGE)
    return name


def _change(
    command: str, channel: str, agent: str | None, as_json: bool, socket: str | None, state_dir: str | None,
    at_leisure: bool | None = None,
) -> int:  # fmt: skip
    from agent_relay.cli.project.link import own_name, run

    name = _name_of(channel)
    place = find_place(socket, state_dir)
    outbox = own_outbox(agent, place.socket)
    if outbox is not None:
        ask_through(outbox, kind=command, to=(name,), type=name_attention(at_leisure))
        who = own_name(agent)[0]
    else:
        who = run(_change_as(place, command, name, agent, at_leisure))
    screen = Screen()
    if as_json:
        screen.json({"agent": who, "channel": name, "stage": "joined" if command == "join" else "left"})
    else:
        word = "joined" if command == "join" else "left"
        screen.line(("done", "bold green"), f"  {clean_line(who)} {word} {name}")
    return 0


async def _change_as(place: Place, command: str, channel: str, agent: str | None, at_leisure: bool | None) -> str:
    """For an agent that is known, whoever holds its connection. You yourself may be new here; a name that was typed may be a
    mistake, and makes nobody."""
    from agent_relay.cli.project.link import connect_as, observe, own_name

    name, is_suggestion = own_name(agent)
    async with observe(place) as relay:
        try:
            if command == "leave":
                return await relay.leave(channel, agent=name)
            return await relay.join(channel, agent=name, at_leisure=at_leisure)
        except RelayError as error:
            if error.code is not ErrorCode.AGENT_NOT_FOUND or not is_suggestion:
                raise
    client = await connect_as(place, agent, max_inflight=1)
    try:
        return await (client.join(channel, at_leisure=at_leisure) if command == "join" else client.leave(channel))
    finally:
        await client.close(2.0)
