"""The answers of the tools, as text for a model: what happened, and where something failed, what to do next.

Messages are dictionaries as the wire has them. Times are spans before `now_ms`: a model knows no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_relay.protocol.channels import ChannelFacts
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.protocol.proposals import Proposal, describe_tally
from agent_relay.protocol.short_ids import short_id
from agent_relay.protocol.visible_text import clean, reveal

Message = Mapping[str, Any]

NOT_RUNNING = "The relay is not running. Ask your user to run `agent-relay up` in the project, then call this again."
_NEXT = {
    ErrorCode.AGENT_NOT_FOUND: "relay_agents lists the names.",
    ErrorCode.CHANNEL_NOT_FOUND: "relay_join creates it.",
    ErrorCode.QUEUE_FULL: "Nothing was sent; try again in a minute, and send only what matters.",
    ErrorCode.RATE_LIMITED: "Wait a second and call this again.",
    ErrorCode.SERVICE_UNAVAILABLE: "Wait a few seconds and call this again.",
    ErrorCode.MESSAGE_TOO_LARGE: "Write it to a file, and send the file's path.",
    ErrorCode.PERMISSION_DENIED: "Ask your user, who can do it or allow it.",
}
_CHANNELS = 50  # that are shown
_SHORTENED = 4_000  # characters of one body; the whole of it is in the history of the relay


def explain(error: RelayError) -> str:
    """The error, and what the model can do about it."""
    near = error.details.get("did_you_mean")
    hint = f"Did you mean {' or '.join(str(name) for name in near)}?" if isinstance(near, list) and near else ""
    return " ".join(filter(None, (clean(error.message), hint or _NEXT.get(error.code, ""))))


def show_sent(message_id: str, recipients: int, queued: int, skipped: Sequence[str] = (), waits: Iterable[str] = ()) -> str:
    who = "1 recipient" if recipients == 1 else f"{recipients} recipients"
    offline = f", {queued} of them offline: they get it when they are back" if queued else ""
    full = f" Not to {', '.join(skipped)}: their queues are full." if skipped else ""
    lines = [f"Stored as [{short_id(message_id)}] for {who}{offline}.{full}" if recipients else "Stored, but nobody receives it."]
    return "\n".join([*lines, *(_sentence(line) for line in waits)])


def show_joined(channel: str, *, at_leisure: bool) -> str:
    if at_leisure:
        return f"You are in {channel}: messages that mention you wake you, others come with the next one that does."
    return f"You are in {channel}: messages to it now come to you too."


def show_left(channel: str) -> str:
    return f"You are not in {channel} any more: only what was sent to it before still comes."


def show_answer(by: str, body: str) -> str:
    return f"{_line(by)} answered:\n{_quote(body)}"


def show_no_answer(seconds: int, why: str) -> str:
    return " ".join(
        filter(None, (f"No answer within {seconds} s.", _sentence(why), "The question stays stored; relay_status shows its way."))
    )


def show_result(task: str, message_id: str) -> str:
    return f"The result of {_line(task)} is stored as [{short_id(message_id)}]."


def show_vote(proposal: Proposal, choice: str) -> str:
    """A vote that counts, and how the proposal stands now."""
    stands = f"It is {proposal.outcome.value}" if proposal.outcome is not None else "It is still open"
    return f"Your vote counts: {choice}. {describe_tally(proposal)}. {stands}. {_line(proposal.resolution)}".rstrip()


def show_messages(messages: Sequence[Message], now_ms: int, nothing: str, *, more: bool = False) -> str:
    """The oldest first."""
    if not messages:
        return nothing
    text = "\n\n".join(show_message(message, now_ms) for message in messages)
    return f"{text}\n\nThere are more; narrow the search, or raise limit." if more else text


def show_message(message: Message, now_ms: int) -> str:
    return f"{show_heading(message, now_ms)}\n{_quote(str((message.get('payload') or {}).get('body', '')))}"


def show_heading(message: Message, now_ms: int) -> str:
    to = _line(str(message.get("to") or message.get("topic") or ""))
    about = [f"thread {_line(str(message['thread']))}"] if message.get("thread") else []
    if message.get("copy"):
        about.append("a copy, not to you")
    elif _awaits_answer(message):
        about.append("waits for an answer")
    more = f" ({', '.join(about)})" if about else ""
    ago = show_span(now_ms - int(message.get("ts") or now_ms))
    return f"[{short_id(str(message.get('message_id')))}] {_line(str(message.get('from')))} to {to}, {ago} ago{more}"


def _awaits_answer(message: Message) -> bool:
    sync = (message.get("payload_meta") or {}).get("sync")
    return isinstance(sync, Mapping) and bool(sync.get("correlationId") or sync.get("blocking"))


def show_agents(agents: Sequence[Mapping[str, Any]], own_name: str, now_ms: int, channels: Sequence[ChannelFacts] = ()) -> str:
    here = [agent for agent in agents if agent.get("connected")]
    away = [agent for agent in agents if not agent.get("connected")]
    lines = [_agent_line(agent, own_name) for agent in here]
    if away:
        seen = sorted(away, key=lambda agent: -int(agent.get("last_seen_at") or 0))
        names = [f"{_line(str(each['name']))} ({show_span(now_ms - int(each.get('last_seen_at') or 0))})" for each in seen[:20]]
        rest = f" and {len(seen) - 20} more" if len(seen) > 20 else ""
        lines.append(f"Offline since: {', '.join(names)}{rest}. What you send them waits for them.")
    lines += [_channel_line(each) for each in channels[:_CHANNELS]]
    return "\n".join(lines) or "No agent has connected yet."


def _channel_line(channel: ChannelFacts) -> str:
    members = "1 member" if len(channel.members) == 1 else f"{len(channel.members)} members"
    return f"{_line(channel.name)}, {members}" + (f": {_line(channel.topic_line)}" if channel.topic_line else "")


def _agent_line(agent: Mapping[str, Any], own_name: str) -> str:
    parts = [_line(str(agent.get("name")))]
    if str(agent.get("name")).lower() == own_name.lower():
        parts[0] += " (you)"
    parts.append(_line(str(agent.get("state"))))
    parts += [_line(str(agent["cli"]))] if agent.get("cli") else []
    parts += [" ".join(_line(str(each)) for each in agent["channels"])] if agent.get("channels") else []
    waits = int(agent.get("queue_depth") or 0) + int(agent.get("inflight") or 0)
    parts += [f"{waits} messages wait"] if waits else []
    return ", ".join(parts)


def show_status(server: Mapping[str, Any], own_name: str, connected: int) -> str:
    project = _line(str(server.get("project_name") or "this project"))
    up = show_span(int(server.get("uptime_ms") or 0))
    dead = int(server.get("dead_letters") or 0)
    undelivered = f" {dead} messages could not be delivered." if dead else ""
    problem = _line(str((server.get("storage") or {}).get("problem") or ""))
    return f"You are {own_name}. The relay of {project} has been up for {up}; {_count(connected)} connected.{undelivered}" + (
        f" {problem}" if problem else ""
    )


def _count(connected: int) -> str:
    return "1 agent is" if connected == 1 else f"{connected} agents are"


def show_life(message: Message, trail: Sequence[Mapping[str, Any]], now_ms: int) -> str:
    states = [
        f"{_line(str(one.get('name')))}{' (a copy)' if one.get('copy') else ''}: {one.get('status')}"
        for one in message.get("recipients") or ()
    ]
    steps = [
        f"- {show_span(now_ms - int(step.get('at') or now_ms))} ago: {_line(str(step.get('event')))}"
        f" {_line(str(step.get('to') or ''))} {_line(str(step.get('detail') or ''))}".rstrip()
        for step in trail[-20:]
    ]
    return "\n".join([show_heading(message, now_ms), ", ".join(states) or "It has no recipients.", *steps])


def show_waiting(messages: Sequence[Message], now_ms: int) -> str:
    """Of a wrapped agent, whose messages come by themselves."""
    heads = "\n".join(show_heading(message, now_ms) for message in messages)
    return f"On their way to you, and put before you as soon as you can take them:\n{heads}"


def show_span(ms: int) -> str:
    seconds = max(0, ms) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _sentence(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if not line or line[-1] in ".!?" else f"{line}."


def _quote(body: str) -> str:
    text = clean(body)
    if len(text) > _SHORTENED:
        text = f"{text[:_SHORTENED]}… ({len(text) - _SHORTENED:,} more characters)"
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _line(text: str) -> str:
    """On one line, and nothing in it passes for something else."""
    plain = reveal(" ".join(clean(text).split()))
    return plain if len(plain) <= 200 else show(plain, 200)
