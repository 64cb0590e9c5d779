"""Costs over time."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from agent_relay.events.costs import Usage
from agent_relay.events.trend import CostTrend, find_trend
from agent_relay.protocol.names import fold_name
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import Moment, Name
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.routes.costs import read_usages


class TrendQuery(Struct):
    since: Moment | None = None
    until: Moment | None = None
    agent: Name | None = None
    session: Name | None = None
    points: Annotated[int, Meta(ge=1, le=500, description="The number of steps.")] = 60


async def trend(api: Api, call: Call) -> CostTrend:
    asked: TrendQuery = call.query
    wanted = [usage async for usage in read_usages(api, asked.since, asked.until) if _is_wanted(usage, asked)]
    until = api.wall_ms() + 1 if asked.until is None else asked.until
    return find_trend(wanted, api.read_prices(), asked.since, until, asked.points)


def _is_wanted(usage: Usage, asked: TrendQuery) -> bool:
    is_agents = asked.agent is None or fold_name(asked.agent) == fold_name(usage.agent)
    return is_agents and asked.session in (None, usage.session_id)


ROUTES = (Route("GET", "/api/v1/costs/trend", trend, "Spending over time.", "costs", CostTrend, query=TrendQuery, errors=(503,)),)
