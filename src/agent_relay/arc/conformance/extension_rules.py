"""Subscriptions, messages for who is away, one connection per agent, tokens that end, and the extensions `persistence` and
`presence`."""

from __future__ import annotations

import json
from typing import Any

from agent_relay.arc.conformance.case import Broken, Level, NotOffered, Section, require
from agent_relay.arc.conformance.stage import Frame, Peer, Stage

# --- subscriptions ------------------------------------------------------------------------------------------------------

subscriptions = Section("subscriptions", level=Level.OFFERED, offered=lambda facts: facts.has("subscribe"))


async def _subscribe(peer: Peer, *agents: str, type_: str = "subscribe", answer: str = "subscribed") -> Frame:
    await peer.command(type_, {"agents": list(agents)})
    return await peer.hear_type(answer)


def _agents(frame: Frame) -> list[Any]:
    payload = frame.get("payload")
    agents = payload.get("agents") if isinstance(payload, dict) else None
    return agents if isinstance(agents, list) else []


@subscriptions.rule
async def subscribes(stage: Stage) -> None:
    """`subscribe` returns all subscriptions, and the agent's broadcasts arrive, each once."""
    reader, speaker = await stage.join_two()
    require(speaker.id in _agents(await _subscribe(reader, speaker.id)), "the response does not name the agent")
    await speaker.say(["*"], stage.text("news"))
    await reader.hear_payload(stage.text("news"))
    got = await stage.frames_until_marker(speaker, reader)
    require(sum(frame.get("payload") == stage.text("news") for frame in got) == 1, "the broadcast arrived more than once")
    await _unsubscribe(reader, speaker.id)


@subscriptions.rule
async def keeps_direct_messages_private(stage: Stage) -> None:
    """A subscriber does not get what the agent writes to others."""
    reader, speaker, friend = await stage.join_three()
    leaks = await _leaks_to_subscriber(stage, reader, speaker, (speaker, friend))
    require(not leaks, "a direct message to somebody else reached a subscriber")


@subscriptions.rule
async def does_not_show_what_others_write_to_it(stage: Stage) -> None:
    """A subscriber does not get what others write to the agent."""
    reader, speaker, friend = await stage.join_three()
    leaks = await _leaks_to_subscriber(stage, reader, speaker, (friend, speaker))
    require(not leaks, "a direct message to the agent reached its subscriber")


async def _leaks_to_subscriber(stage: Stage, reader: Peer, speaker: Peer, way: tuple[Peer, Peer]) -> bool:
    """Whether the reader, who has subscribed to the speaker, gets what one of a pair writes to the other."""
    sender, recipient = way
    await _subscribe(reader, speaker.id)
    await sender.say([recipient.id], stage.text("private"))
    await recipient.hear_payload(stage.text("private"))
    got = await stage.frames_until_marker(sender, reader)
    await _unsubscribe(reader, speaker.id)
    return any(frame.get("payload") == stage.text("private") for frame in got)


@subscriptions.rule
async def unsubscribes(stage: Stage) -> None:
    """`unsubscribe` ends a subscription, and `list_subscriptions` shows it."""
    reader, speaker = await stage.join_two()
    await _subscribe(reader, speaker.id)
    await reader.command("list_subscriptions")
    require(speaker.id in _agents(await reader.hear_type("subscriptions")), "`list_subscriptions` does not name the agent")
    require(speaker.id not in _agents(await _unsubscribe(reader, speaker.id)), "the response still names the agent")


@subscriptions.advice
async def are_kept(stage: Stage) -> None:
    """Subscriptions outlive the connection."""
    agent, speaker = await stage.relay.take_agent(), await stage.relay.take_agent()
    reader = await stage.join(agent)
    await _subscribe(reader, speaker.agent_id)
    await reader.connection.close()
    again = await stage.join(agent)
    await again.command("list_subscriptions")
    require(speaker.agent_id in _agents(await again.hear_type("subscriptions")), "it was lost")
    await _unsubscribe(again, speaker.agent_id)


async def _unsubscribe(peer: Peer, agent: str) -> Frame:
    return await _subscribe(peer, agent, type_="unsubscribe", answer="unsubscribed")


# --- messages for who is away -------------------------------------------------------------------------------------------

offline = Section("offline", level=Level.OFFERED, offered=lambda facts: facts.has("offline"))


@offline.rule
async def stores_direct_messages(stage: Stage) -> None:
    """Messages to an agent that is away arrive on its next connection: in order, once, marked `stored`."""
    agent = await stage.relay.take_agent()
    away = await stage.join(agent)
    sender, witness = await stage.join_two()
    await away.connection.close()
    sent = [stage.text(number) for number in range(3)]
    for text in sent:
        await sender.say([agent.agent_id, witness.id], text)
    seen = {text: await witness.hear_payload(text) for text in sent}
    back = await stage.join(agent)
    for text in sent:
        frame = await back.hear_payload(text)
        require(frame.get("stored") is True, "it is not marked `stored`")
        require(frame.get("ts") == seen[text].get("ts"), "its `ts` is not the time it was sent")
        require(frame.get("id") == seen[text].get("id"), "its `id` is not the one it was sent with")
    await back.connection.close()
    again = await stage.join(agent)
    require(not await stage.frames_until_marker(sender, again), "it arrived a second time")


# --- one connection per agent -------------------------------------------------------------------------------------------

one_connection = Section("one connection per agent", level=Level.ADVICE)


@one_connection.rule
async def the_newer_one_takes_over(stage: Stage) -> None:
    """A second connection of an agent closes the first with 4000 and gets its messages."""
    agent, sender = await stage.relay.take_agent(), await stage.join()
    old = await stage.join(agent)
    new = await stage.join(agent)
    require(await old.hear_close() == 4000, f"the first was closed with {old.connection.close_code}")
    await sender.say([new.id], stage.text("new"))
    await new.hear_payload(stage.text("new"))


# --- tokens that end ----------------------------------------------------------------------------------------------------

tokens = Section("tokens", level=Level.OFFERED)


@tokens.rule
async def refresh_gives_another(stage: Stage) -> None:
    """POST /token/refresh with the token as bearer returns a new one for the same agent, and it opens a connection."""
    agent = await stage.relay.register()
    answer = await stage.relay.call("POST", "/token/refresh", token=agent.token)
    if answer.status in {404, 405, 501}:
        raise NotOffered("/token/refresh does not exist")
    body = answer.body if isinstance(answer.body, dict) else {}
    require(answer.status == 200 and body.get("agent_id") == agent.agent_id, f"it returned {answer.status}")
    token = body.get("token")
    require(isinstance(token, str) and token != agent.token, "the token is the same as before")
    connection = await stage.open(str(token))
    await connection.close()


@tokens.rule
async def revoking_ends_everything(stage: Stage) -> None:
    """DELETE /register closes the agent's connection with 4001; its token is refused, and its id stays taken."""
    agent = await stage.relay.register()
    peer = await stage.join(agent)
    answer = await stage.relay.call("DELETE", "/register", token=agent.token)
    if answer.status in {404, 405, 501}:
        raise NotOffered("DELETE /register does not exist")
    require(answer.status in {200, 204}, f"it returned {answer.status}")
    require(await peer.hear_close() == 4001, f"the connection was closed with {peer.connection.close_code}")
    require(await stage.refused_status(agent.token) == 401, "the token is not refused with 401")
    again = await stage.relay.try_to_register(agent.agent_id)
    require(again.status in {400, 409}, f"the id could be registered again: {again.status}")


# --- persistence --------------------------------------------------------------------------------------------------------

persistence = Section("persistence", level=Level.OFFERED, offered=lambda facts: facts.has("persistence"))


async def _ask(peer: Peer, command: str, **arguments: Any) -> list[Frame]:
    await peer.command("command", {"command": command, **arguments})
    frame = await peer.hear_type("command_result")
    payload = frame.get("payload")
    messages = payload.get("messages") if isinstance(payload, dict) else None
    if not isinstance(messages, list):
        raise Broken(f"the result of `{command}` has no `messages`")
    return messages


def _texts(stage: Stage, messages: list[Frame]) -> list[Any]:
    return [message.get("payload") for message in messages if stage.text() in json.dumps(message)]


@persistence.rule
async def shows_own_and_broadcast_messages(stage: Stage) -> None:
    """`history` has messages to us, from us and to everybody, but none that others wrote to each other."""
    one, other, third = await stage.join_three()
    await one.say([other.id], stage.text("private"))
    await one.say(["*"], stage.text("public"))
    await one.say([third.id], stage.text("yours"))
    await third.hear_payload(stage.text("yours"))
    await other.hear_payload(stage.text("public"))
    require(
        _texts(stage, await _ask(third, "history", limit=50)) == [stage.text("public"), stage.text("yours")],
        "not exactly these two",
    )
    mine = _texts(stage, await _ask(one, "history", limit=50))
    require(mine == [stage.text("private"), stage.text("public"), stage.text("yours")], f"its author sees {mine}")


@persistence.rule
async def finds_words(stage: Stage) -> None:
    """`search` finds a word, but only in messages one may see."""
    one, other, third = await stage.join_three()
    word = stage.text("needle")
    for text in ("hay", word):
        await one.say([other.id], text)
    await other.hear_payload(word)
    found = await _ask(other, "search", query=word)
    require(word in _texts(stage, found), "its recipient does not find it")
    require(all(word in json.dumps(message) for message in found), "it finds messages without the word")
    require(not _texts(stage, await _ask(third, "search", query=word)), "somebody else finds it")


@persistence.rule
async def replays(stage: Stage) -> None:
    """`replay` has everything after the given message, oldest first."""
    one, other = await stage.join_two()
    ids = []
    for number in range(4):
        await one.say([other.id], stage.text(number))
        ids.append((await other.hear_payload(stage.text(number))).get("id"))
    got = _texts(stage, await _ask(other, "replay", since_message_id=ids[1]))
    require(got == [stage.text(2), stage.text(3)], f"it has {got}")


# --- presence -----------------------------------------------------------------------------------------------------------

presence = Section("presence", level=Level.OFFERED, offered=lambda facts: facts.has("presence"))


@presence.rule
async def lists_who_is_there(stage: Stage) -> None:
    """`presence_list` names the connected agents."""
    one, other = await stage.join_two()
    await one.command("command", {"command": "presence_list"})
    frame = await one.hear_type("command_result")
    require(other.id in json.dumps(_agents(frame)), "a connected agent is missing")


@presence.rule
async def tells_who_comes_and_goes(stage: Stage) -> None:
    """After `presence_subscribe`, joins and leaves are reported."""
    one, agent = await stage.join(), await stage.relay.take_agent()
    await one.command("command", {"command": "presence_subscribe"})
    await one.hear_type("command_result")
    other = await stage.join(agent)
    await _told(one, "join", agent.agent_id)
    await other.connection.close()
    await _told(one, "leave", agent.agent_id)


async def _told(peer: Peer, event: str, agent: str) -> None:
    def is_it(frame: Frame) -> bool:
        payload = frame.get("payload")
        said = payload if isinstance(payload, dict) else {}
        return frame.get("type") == "presence" and said.get("event") == event and said.get("agent") == agent

    await peer.hear(is_it, f"a {event} of {agent}")


EXTENSIONS = [subscriptions, offline, one_connection, tokens, persistence, presence]
