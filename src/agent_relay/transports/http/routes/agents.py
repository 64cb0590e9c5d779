"""Agents: who is there, what they show, and commands to them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from agent_relay.events.costs import Breakdown
from agent_relay.ports.service import AgentFacts
from agent_relay.ports.watchers import Shown
from agent_relay.protocol.holds import describe_hold, read_hold
from agent_relay.protocol.names import fold_name
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import InputBody, LinesQuery
from agent_relay.transports.http.errors import not_found
from agent_relay.transports.http.route import Call, Handler, Route
from agent_relay.transports.http.views import AgentList, AgentView, DoingView, Done, HoldView, Output, build


def find_name(api: Api, name: str) -> str:
    """As it is spelled; raises RelayError for one that nobody has."""
    return api.service.agent(name).name


def show_agent(api: Api, found: AgentFacts, used: dict[str, tuple[str, Breakdown]]) -> AgentView:
    now_ms = api.wall_ms()
    hold = read_hold(found.hold)
    words = None if hold is None else describe_hold(hold, found.name, lambda at_ms: _show_minute(at_ms, now_ms), api.service.name)
    shown = build(
        AgentView, found, open_requests=len(found.requests),
        hold=None if hold is None or words is None else HoldView(hold.reason, words.text, words.todo, words.line),
    )  # fmt: skip
    usage = used.get(fold_name(shown.name))
    if usage is not None:
        shown.model, shown.total_tokens, shown.estimated_cost_usd = usage[0], usage[1].total_tokens, usage[1].estimated_cost_usd
    activity = api.activity.of(found.name, found.session_id)
    if activity is not None:
        shown.doing = None if activity.doing is None else build(DoingView, activity.doing)
        shown.state_at = activity.state_at if activity.state == shown.state else None
    return shown


def _show_minute(at_ms: int, now_ms: int) -> str:
    """By the clock of this machine: `14:02`; with the date where that is another day."""
    try:
        at, now = (datetime.fromtimestamp(ms / 1000, UTC).astimezone() for ms in (at_ms, now_ms))
    except (OverflowError, ValueError, OSError):
        return str(at_ms)
    return f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"


async def list_agents(api: Api, call: Call) -> AgentList:
    del call
    used = api.usage.agents()
    return AgentList([show_agent(api, found, used) for found in api.service.agents()])


async def get_agent(api: Api, call: Call) -> AgentView:
    return show_agent(api, api.service.agent(call.names["name"]), api.usage.agents())


async def output(api: Api, call: Call) -> Output:
    name = find_name(api, call.names["name"])
    return _shown(name, await asyncio.to_thread(api.screens.output, name, call.query.lines))


async def screen(api: Api, call: Call) -> Output:
    name = find_name(api, call.names["name"])
    return _shown(name, await asyncio.to_thread(api.screens.screen, name))


def _shown(name: str, shown: Shown | None) -> Output:
    if shown is None:
        raise not_found(f"There is no recorded terminal of {name}; only agents that the relay runs have one.")
    return Output(shown.lines, shown.is_over)


def controller(command: str) -> Handler:
    async def control(api: Api, call: Call) -> Done:
        await api.service.control(find_name(api, call.names["name"]), command, caller=call.caller)
        return Done()

    return control


async def type_in(api: Api, call: Call) -> Done:
    await api.service.control(find_name(api, call.names["name"]), "input", call.body.text, caller=call.caller)
    return Done()


_TAG = "agents"
_ONE = "/api/v1/agents/{name}"
_FAILS = (404, 409, 429, 503)
_CONTROLS = {
    "pause": "Hold messages to the agent; they wait in order.",
    "resume": "Deliver its messages again.",
    "stop": "Stop its program.",
    "interrupt": "Interrupt what it is doing.",
}
ROUTES = (
    Route("GET", "/api/v1/agents", list_agents, "All known agents.", _TAG, AgentList),
    Route("GET", _ONE, get_agent, "One agent.", _TAG, AgentView, errors=(404,)),
    Route("GET", _ONE + "/output", output, "The last lines of its terminal.", _TAG, Output, query=LinesQuery, errors=(404,)),
    Route("GET", _ONE + "/screen", screen, "What its terminal shows now.", _TAG, Output, errors=(404,)),
    *(
        Route(
            "POST", f"{_ONE}/{command}", controller(command), summary, _TAG, Done, errors=_FAILS, right="control", takes_key=True
        )
        for command, summary in _CONTROLS.items()
    ),
    Route(
        "POST",
        _ONE + "/input",
        type_in,
        "Type into its terminal.",
        _TAG,
        Done,
        body=InputBody,
        errors=_FAILS,
        right="control",
        takes_key=True,
    ),
)
