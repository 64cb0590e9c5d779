"""Rules that every relay must keep: registration, connecting, the fields the relay sets, validation, routing, disconnecting."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from agent_relay.arc.conformance.case import Check, Level, Section, Unchecked, require
from agent_relay.arc.conformance.stage import Stage, new_agent_id
from agent_relay.protocol.arc.ids import is_agent_id

# --- registration -------------------------------------------------------------------------------------------------------

registration = Section("registration")


@registration.rule
async def gives_the_id_asked_for(stage: Stage) -> None:
    """POST /register with an agent_id returns 200 with that id and a token."""
    wanted = new_agent_id()
    given = await stage.relay.register(wanted)
    require(given.agent_id == wanted, f"asked for {wanted}, got {given.agent_id}")
    require(given.token, "the token is empty")


@registration.rule
async def picks_an_id(stage: Stage) -> None:
    """Without an agent_id, the relay picks a valid one."""
    given = await stage.relay.register()
    require(is_agent_id(given.agent_id), f"{given.agent_id!r} is not a valid agent id")


@registration.rule
async def refuses_a_taken_id(stage: Stage) -> None:
    """A registered id cannot be registered again: 409, with `error` and `message`."""
    agent = await stage.relay.take_agent()
    answer = await stage.relay.try_to_register(agent.agent_id)
    require(answer.status in {400, 409}, f"the second registration of {agent.agent_id} returned {answer.status}")
    body = answer.body if isinstance(answer.body, dict) else {}
    require("token" not in body, "the refusal contains a token")
    require(isinstance(body.get("error"), str) and isinstance(body.get("message"), str), f"the refusal is {body!r}")


@registration.rule
async def refuses_ids_that_are_none(stage: Stage) -> None:
    """Ids are 3 to 64 of a-z, 0-9 and hyphens, with no hyphen at either end; others return 400."""
    for wrong in ("ab", "-abc", "abc-", "Upper-1", "under_score", "a" * 65, "", 42):
        answer = await stage.relay.try_to_register(wrong)
        if answer.status == 429:
            raise Unchecked("the relay allows no more registrations now")
        require(answer.status in {400, 409, 422}, f"agent_id {wrong!r} returned {answer.status}")


@registration.rule
async def tokens_differ(stage: Stage) -> None:
    """Every agent gets its own token, long enough not to be guessed."""
    one, other = await stage.relay.take_agent(), await stage.relay.take_agent()
    require(one.token != other.token, "two agents have the same token")
    require(len(one.token) >= 12, f"a token of {len(one.token)} characters can be guessed")


@registration.advice
async def keeps_the_relays_name(stage: Stage) -> None:
    """Nobody can register as `relay` and speak in its name."""
    answer = await stage.relay.try_to_register("relay")
    require(answer.status in {400, 409}, f"`relay` could be registered: {answer.status}")


# --- connection ---------------------------------------------------------------------------------------------------------

connection = Section("connection")


@connection.rule
async def takes_the_token_from_the_header(stage: Stage) -> None:
    """`Authorization: Bearer <token>` opens the connection as the agent of that token."""
    sender, recipient = await stage.join_two()
    await sender.say([recipient.id], stage.text("x"))
    frame = await recipient.hear_payload(stage.text("x"))
    require(frame.get("from") == sender.id, f"`from` is {frame.get('from')!r}, not {sender.id!r}")


@connection.rule
async def takes_the_token_from_the_query(stage: Stage) -> None:
    """`?token=<token>` opens the connection as the agent of that token."""
    sender = await stage.join(query=True)
    recipient = await stage.join()
    await sender.say([recipient.id], stage.text("x"))
    frame = await recipient.hear_payload(stage.text("x"))
    require(frame.get("from") == sender.id, f"`from` is {frame.get('from')!r}, not {sender.id!r}")


@connection.rule
async def refuses_an_unknown_token(stage: Stage) -> None:
    """An unknown token is refused with 401 before the connection is open."""
    status = await stage.refused_status(f"tok_{secrets.token_urlsafe(32)}")
    require(status == 401, f"it was refused with {status}, not 401")


@connection.rule
async def refuses_no_token(stage: Stage) -> None:
    """Without a token, the connection is refused with 401."""
    status = await stage.refused_status(None)
    require(status == 401, f"it was refused with {status}, not 401")


@connection.advice
async def the_header_wins(stage: Stage) -> None:
    """A wrong token in the header is refused, even with a correct one in the query."""
    agent = await stage.relay.take_agent()
    status = await stage.refused_status(agent.token, query=True, header="tok_wrong")
    require(status == 401, f"it was refused with {status}, not 401")


# --- the fields the relay sets ------------------------------------------------------------------------------------------

fields = Section("relay-assigned fields")


async def _sent_with(stage: Stage, **given: Any) -> tuple[str, dict[str, Any]]:
    """The sender's id, and the message as it arrived."""
    sender, recipient = await stage.join_two()
    await sender.say([recipient.id], stage.text("x"), **given)
    return sender.id, await recipient.hear_payload(stage.text("x"))


@fields.rule
async def sets_from(stage: Stage) -> None:
    """`from` is the agent of the token, whatever the client sends."""
    other = await stage.relay.take_agent()
    sender, frame = await _sent_with(stage, **{"from": other.agent_id})
    require(frame.get("from") == sender, f"a client wrote as {frame.get('from')!r}; it is {sender!r}")


@fields.rule
async def sets_ts(stage: Stage) -> None:
    """`ts` is the relay's time in milliseconds, whatever the client sends."""
    _, frame = await _sent_with(stage, ts=1_000)
    ts = frame.get("ts")
    require(isinstance(ts, int), f"`ts` is {ts!r}")
    require(ts != 1_000, "the client's `ts` was passed on")
    require(
        isinstance(ts, int) and abs(ts - time.time() * 1000) < 86_400_000,
        f"`ts` is {ts}, which is not the current time in milliseconds",
    )


@fields.rule
async def sets_id(stage: Stage) -> None:
    """`id` is set by the relay, whatever the client sends."""
    _, frame = await _sent_with(stage, id=stage.text("mine"))
    require(isinstance(frame.get("id"), str) and frame.get("id"), f"`id` is {frame.get('id')!r}")
    require(frame.get("id") != stage.text("mine"), "the client's `id` was passed on")


@fields.rule
async def ids_are_unique(stage: Stage) -> None:
    """No two messages have the same id."""
    sender, recipient = await stage.join_two()
    ids = []
    for number in range(5):
        await sender.say([recipient.id], stage.text(number))
        ids.append((await recipient.hear_payload(stage.text(number))).get("id"))
    require(len(set(map(str, ids))) == len(ids), f"ids were used twice: {ids}")


@fields.rule
async def keeps_to_and_payload(stage: Stage) -> None:
    """`to` and `payload` arrive as they were sent, any JSON value."""
    sender, recipient = await stage.join_two()
    payload: dict[str, Any] = {
        "word": stage.text("x"),
        "text": 'é ☃ 🜚 \u2028 \\ "',
        "list": [1, 2.5, None, True, []],
        "nested": {"a": {"b": "c"}},
    }
    await sender.say([recipient.id], payload)
    frame = await recipient.hear(lambda found: stage.text("x") in json.dumps(found.get("payload")), "the message")
    require(frame.get("payload") == payload, f"the payload arrived as {frame.get('payload')!r}")
    require(frame.get("to") == [recipient.id], f"`to` arrived as {frame.get('to')!r}")


@fields.advice
async def keeps_other_fields(stage: Stage) -> None:
    """`type` and fields the relay does not know arrive unchanged."""
    _, frame = await _sent_with(stage, type="note", colour={"r": 1})
    require(frame.get("type") == "note", f"`type` arrived as {frame.get('type')!r}")
    require(frame.get("colour") == {"r": 1}, f"an unknown field arrived as {frame.get('colour')!r}")


# --- validation ---------------------------------------------------------------------------------------------------------

validation = Section("message validation")

_NOT_MESSAGES: dict[str, tuple[str, str]] = {
    "not-json": ("A frame that is not JSON", "{not json"),
    "null": ("`null`", "null"),
    "a-number": ("A number", "42"),
    "a-text": ("A text", '"hello"'),
    "an-array": ("An array", "[]"),
    "nothing": ("An empty frame", ""),
    "no-to": ("A message without `to`", '{"payload": "WORD"}'),
    "to-is-text": ("A `to` that is not an array", '{"to": "RECIPIENT", "payload": "WORD"}'),
    "to-holds-numbers": ("A `to` that contains something other than strings", '{"to": ["RECIPIENT", 7], "payload": "WORD"}'),
    "no-payload": ("A message without `payload`", '{"to": ["RECIPIENT"], "note": "WORD"}'),
}


def _refuses(raw: str) -> Check:
    async def check(stage: Stage) -> None:
        sender, recipient = await stage.join_two()
        await sender.say_raw(raw.replace("RECIPIENT", recipient.id).replace("WORD", stage.text("invalid")))
        forwarded = await stage.frames_until_marker(sender, recipient)
        require(not forwarded, f"it was forwarded: {forwarded[:1]}")

    return check


for _name, (_what, _raw) in _NOT_MESSAGES.items():
    validation.add(_name, f"{_what} is not forwarded, and the connection stays open.", _refuses(_raw))


@validation.rule
async def others_do_not_notice(stage: Stage) -> None:
    """Invalid frames from one client do not affect others."""
    bad, sender, recipient = await stage.join_three()
    for _, raw in _NOT_MESSAGES.values():
        await bad.say_raw(raw)
    await bad.connection.close()
    await sender.say([recipient.id], stage.text("x"))
    await recipient.hear_payload(stage.text("x"))


async def _binary(stage: Stage) -> None:
    sender, recipient = await stage.join_two()
    await sender.say_raw(json.dumps({"to": [recipient.id], "payload": stage.text("binary")}).encode())
    forwarded = await stage.frames_until_marker(sender, recipient)
    require(not forwarded, "it was forwarded")


validation.add("binary", "A binary frame is not forwarded, and the connection stays open.", _binary, Level.ADVICE)

# --- routing ------------------------------------------------------------------------------------------------------------

routing = Section("routing")


@routing.rule
async def broadcasts_to_all_but_the_sender(stage: Stage) -> None:
    """`["*"]` reaches every connected agent, once, and not its sender."""
    sender, one, other = await stage.join_three()
    await sender.say(["*"], stage.text("all"))
    for peer in (one, other):
        await peer.hear_payload(stage.text("all"))
        require(not _others(await stage.frames_until_marker(sender, peer), stage.text("all"), 1), "it arrived more than once")
    require(not await stage.frames_until_marker(one, sender), "its sender got it too")


@routing.rule
async def sends_direct_messages_to_one(stage: Stage) -> None:
    """`["agent"]` reaches that agent and nobody else."""
    sender, recipient, other = await stage.join_three()
    await sender.say([recipient.id], stage.text("direct"))
    await recipient.hear_payload(stage.text("direct"))
    require(not await stage.frames_until_marker(sender, other), "somebody else got it too")


@routing.rule
async def sends_to_several(stage: Stage) -> None:
    """`["a", "b"]` reaches both, each once."""
    sender, one, other = await stage.join_three()
    await sender.say([one.id, other.id], stage.text("both"))
    for peer in (one, other):
        await peer.hear_payload(stage.text("both"))
        require(not _others(await stage.frames_until_marker(sender, peer), stage.text("both"), 1), "it arrived more than once")


@routing.rule
async def drops_what_is_for_nobody(stage: Stage) -> None:
    """A message to an agent that does not exist is dropped, and the connection stays open."""
    sender, recipient = await stage.join_two()
    await sender.say([new_agent_id()], stage.text("nobody"))
    require(not await stage.frames_until_marker(sender, recipient), "somebody got it")


@routing.rule
async def answers_both_ways(stage: Stage) -> None:
    """An agent that was written to can write back."""
    one, other = await stage.join_two()
    await one.say([other.id], stage.text("question"))
    asked = await other.hear_payload(stage.text("question"))
    await other.say([str(asked.get("from"))], stage.text("answer"))
    await one.hear_payload(stage.text("answer"))


@routing.advice
async def keeps_the_order(stage: Stage) -> None:
    """One sender's messages arrive in the order in which they were sent."""
    sender, recipient = await stage.join_two()
    sent = [stage.text(number) for number in range(20)]
    for text in sent:
        await sender.say([recipient.id], text)
    got = [frame.get("payload") for frame in await stage.frames_until_marker(sender, recipient)]
    require(got == sent, f"they arrived as {got}")


@routing.advice
async def sends_once_to_who_is_named_twice(stage: Stage) -> None:
    """An agent listed twice in `to` gets the message once."""
    sender, recipient = await stage.join_two()
    await sender.say([recipient.id, recipient.id], stage.text("twice"))
    got = await stage.frames_until_marker(sender, recipient)
    require(len(got) == 1, f"it arrived {len(got)} times")


@routing.advice
async def sends_to_the_sender_who_is_named(stage: Stage) -> None:
    """A sender listed in `to` gets its own message."""
    sender = await stage.join()
    await sender.say([sender.id], stage.text("self"))
    await sender.hear_payload(stage.text("self"))


# --- disconnecting ------------------------------------------------------------------------------------------------------

disconnection = Section("disconnection")


@disconnection.rule
async def answers_a_close(stage: Stage) -> None:
    """A close with 1000 is answered, and the agent can connect again with the same token."""
    agent = await stage.relay.take_agent()
    peer = await stage.join(agent)
    await peer.connection.close()
    require(peer.connection.close_code == 1000, f"the close was answered with {peer.connection.close_code}")
    again, sender = await stage.join(agent), await stage.join()
    await sender.say([again.id], stage.text("again"))
    await again.hear_payload(stage.text("again"))


@disconnection.rule
async def survives_an_abrupt_end(stage: Stage) -> None:
    """A client that vanishes without closing affects nobody: others still get broadcasts and direct messages."""
    sender, recipient, gone = await stage.join_three()
    gone.connection.transport.abort()
    await sender.say(["*"], stage.text("all"))
    await recipient.hear_payload(stage.text("all"))
    await sender.say([gone.id, recipient.id], stage.text("both"))
    await recipient.hear_payload(stage.text("both"))
    require(not _others(await stage.frames_until_marker(sender, recipient), "", 2), "something arrived more than once")


def _others(frames: list[dict[str, Any]], payload: str, expected: int) -> bool:
    """More frames than expected, or, with a payload, other ones."""
    return len(frames) > expected or any(payload and frame.get("payload") != payload for frame in frames)


BASIC = [registration, connection, fields, validation, routing, disconnection]
