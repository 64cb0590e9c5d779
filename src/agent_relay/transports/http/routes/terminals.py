"""Terminals: their screens as they change, and whose the keyboard is."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from agent_relay.protocol.errors import RelayError
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import Body
from agent_relay.transports.http.keyboards import LEASE_MS
from agent_relay.transports.http.route import SSE, Call, Flow, Route
from agent_relay.transports.http.routes.agents import find_name
from agent_relay.transports.http.views import Done

_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_SEVERAL = rf"{_NAME}( *, *{_NAME}){{0,15}}"  # more terminals than fit on any screen


class TerminalsQuery(Struct):
    agents: Annotated[str, Meta(pattern=f"^{_SEVERAL}$", description="Agent names, separated by commas; at most 16.")]


class KeyboardBody(Body):
    holder: Annotated[str, Meta(max_length=64, description="The `holder` you got, to keep the keyboard.")] | None = None
    force: Annotated[bool, Meta(description="Take it from whoever has it.")] = False


class ReleaseBody(Body):
    holder: Annotated[str, Meta(min_length=1, max_length=64)]


class Keyboard(Struct, rename="camel"):
    """`holder` keeps it and gives it back; nobody else gets to know it."""

    holder: str
    expires_at: int
    lease_ms: int


async def stream(api: Api, call: Call) -> Flow:
    wanted = [name.strip() for name in call.query.agents.split(",")]
    found = api.streams.open_terminals(api.live_screens, list(dict.fromkeys(find_name(api, name) for name in wanted)))
    return Flow(found.parts(), found.wait_until_lost, found.close)


async def take_keyboard(api: Api, call: Call) -> Keyboard:
    name = find_name(api, call.names["name"])
    asked: KeyboardBody = call.body
    lease = api.keyboards.take(name, asked.holder, force=asked.force)
    try:
        await api.service.control(name, "pause", for_ms=LEASE_MS, caller=call.caller)
    except RelayError:
        api.keyboards.release(name, lease.holder)
        raise
    return Keyboard(lease.holder, lease.expires_at, LEASE_MS)


async def release_keyboard(api: Api, call: Call) -> Done:
    name = find_name(api, call.names["name"])
    is_theirs = api.keyboards.release(name, call.body.holder)
    if is_theirs:
        await api.service.control(name, "pause", for_ms=0, caller=call.caller)
    return Done(is_theirs)


_STREAM = (
    "Server-sent events. `snapshot` has `agent`, `columns`, `rows` and `text`: write `text` to an empty terminal of that size "
    "to show the agent's screen. It comes first, and again whenever the reader falls behind or the size changes. `output` has "
    "`agent` and the `text` to write next, `end` means that the program has ended, `gone` that there is no terminal."
)
_TAG = "agents"
_KEYBOARD = "/api/v1/agents/{name}/keyboard"
_FAILS = (404, 409, 429, 503)
ROUTES = (
    Route("GET", "/api/v1/terminals/stream", stream, "Live terminals of agents.", _TAG, query=TerminalsQuery,
          media=SSE, errors=(404, 503), description=_STREAM),
    Route("POST", _KEYBOARD, take_keyboard, "Take or keep the keyboard of its terminal; messages wait meanwhile.", _TAG,
          Keyboard, body=KeyboardBody, needs_body=False, errors=_FAILS, right="control"),
    Route("POST", _KEYBOARD + "/release", release_keyboard, "Release the keyboard.", _TAG, Done, body=ReleaseBody,
          errors=_FAILS, right="control"),
)  # fmt: skip
