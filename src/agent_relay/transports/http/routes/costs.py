"""Costs: what was used, in all and over time, and budgets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from agent_relay.events.budgets import Budget, BudgetWatch, Crossing
from agent_relay.events.costs import CostBook, CostReport, CostTrend, Usage, cost_of, find_trend, read_usage
from agent_relay.events.filter import make_filter
from agent_relay.events.pages import EventQuery
from agent_relay.events.types import SessionEnded, TokensUsed
from agent_relay.ports.service import teams_of
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.names import fold_name
from agent_relay.transports.http.api import Api, need
from agent_relay.transports.http.bodies import BudgetBody, CostsQuery, Moment, Name, NewBudget
from agent_relay.transports.http.errors import CONFLICT, HttpError
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.routes.events import read_all_events

_PAGE = 1_000
_BUDGETS = "budgets"
_SCOPES = {"hour": "in the last hour", "session": "in one session", "total": "altogether"}


class TrendQuery(Struct):
    since: Moment | None = None
    until: Moment | None = None
    agent: Name | None = None
    session: Name | None = None
    points: Annotated[int, Meta(ge=1, le=500, description="The number of steps.")] = 60


async def costs(api: Api, call: Call) -> CostReport:
    asked: CostsQuery = call.query
    book = CostBook(
        api.read_prices(), since_ms=asked.since, until_ms=asked.until, agent=asked.agent, session_id=asked.session
    )  # fmt: skip
    async for usage in read_usages(api, asked.since, asked.until):
        book.add(usage)
    return book.report()


async def read_usages(api: Api, since_ms: int | None, until_ms: int | None) -> AsyncIterator[Usage]:
    query = EventQuery(make_filter(["tokens.used"]), since_ms=since_ms, until_ms=until_ms, limit=_PAGE)
    async for event in read_all_events(api, query):
        if isinstance(event, TokensUsed):
            yield read_usage(event)


async def trend(api: Api, call: Call) -> CostTrend:
    asked: TrendQuery = call.query
    wanted = [usage async for usage in read_usages(api, asked.since, asked.until) if _is_wanted(usage, asked)]
    until = api.wall_ms() + 1 if asked.until is None else asked.until
    return find_trend(wanted, api.read_prices(), asked.since, until, asked.points)


def _is_wanted(usage: Usage, asked: TrendQuery) -> bool:
    is_agents = asked.agent is None or fold_name(asked.agent) == fold_name(usage.agent)
    return is_agents and asked.session in (None, usage.session_id)


async def get_budget(api: Api, call: Call) -> BudgetBody:
    del call
    return _show(need(api.budgets, _BUDGETS).current())


async def set_budget(api: Api, call: Call) -> BudgetBody:
    """One that would act at once, because more is spent already, is set only by somebody who says that this is wanted."""
    asked: NewBudget = call.body
    budgets = need(api.budgets, _BUDGETS)
    budget = Budget(
        max_per_hour=_exact(asked.max_per_hour),
        max_per_session=_exact(asked.max_per_session),
        max_total=_exact(asked.max_total),
        alert_threshold=_exact(asked.alert_threshold),
        action=asked.action,
        agents={name: Decimal(str(amount)) for name, amount in asked.agents.items()},
        teams={name: Decimal(str(amount)) for name, amount in asked.teams.items()},
    )
    if budget.action != "alert" and budget != budgets.current() and not asked.confirm:
        passed = await _find_passed(api, budget)
        if passed:
            raise await _ask_before(api, budget, passed)
    budgets.set(budget)
    return _show(budgets.current())


async def _find_passed(api: Api, budget: Budget) -> list[Crossing]:
    """The limits of a budget that more was spent than, where something follows from that."""
    watch, prices, counted = BudgetWatch(), api.read_prices(), set()
    async for event in read_all_events(api, EventQuery(make_filter(["tokens.used", "session.ended"]), limit=_PAGE)):
        if isinstance(event, SessionEnded):
            watch.end_session(event.session_id)
        elif isinstance(event, TokensUsed):
            usage = read_usage(event)
            usd = cost_of(usage, prices)
            if usd is not None and usage.id not in counted:
                counted.add(usage.id)
                watch.spend(usage.session_id, usd, usage.at_ms, usage.agent)
    watch.teams = teams_of(api.service)
    passed = [found for found in watch.set_budget(budget, api.wall_ms()) if found.spent_usd >= found.limit_usd]
    return [found for found in passed if found.action != "alert"]


async def _ask_before(api: Api, budget: Budget, passed: list[Crossing]) -> HttpError:
    stops = budget.action == "stop-all"
    agents = _find_stopped(api, passed)
    said = "; ".join(f"{_say_scope(each)} ${each.spent_usd:,.2f} of ${each.limit_usd:,.2f}" for each in passed)
    starts_none = ["starts no more agents"] if any(not each.name for each in passed) else []
    follows = ", and ".join([*([f"stops {', '.join(agents) or 'no running agents'}"] if stops else []), *starts_none])
    return HttpError(
        CONFLICT,
        ErrorCode.REJECTED,
        f"This budget is already spent ({said}): setting it {follows}, at once. Pass `confirm: true` to set it anyway.",
        reason="budget_spent",
        stops=agents if stops else [],
        exceeded=[
            {
                "budget": each.budget,
                "limitUsd": float(each.limit_usd),
                "spentUsd": float(each.spent_usd),
                "sessionId": each.session_id,
                "name": each.name or None,
            }
            for each in passed
        ],
    )


def _say_scope(passed: Crossing) -> str:
    return f"{passed.budget} {passed.name}" if passed.name else _SCOPES[passed.budget]


def _find_stopped(api: Api, passed: list[Crossing]) -> list[str]:
    """All that the relay runs; where only limits of single agents and teams are spent, those."""
    running = [agent for agent in api.service.agents() if agent.takes_control]
    if any(not each.name for each in passed):
        return [agent.name for agent in running]
    names = {fold_name(each.name) for each in passed if each.budget == "agent"}
    teams, team_of = {each.name for each in passed if each.budget == "team"}, teams_of(api.service)
    return [agent.name for agent in running if fold_name(agent.name) in names or team_of.get(agent.session_id) in teams]


def _exact(amount: float | None) -> Decimal | None:
    return None if amount is None else Decimal(str(amount))


def _show(budget: Budget) -> BudgetBody:
    return BudgetBody(
        _plain(budget.max_per_hour), _plain(budget.max_per_session), _plain(budget.max_total), _plain(budget.alert_threshold),
        budget.action, {name: float(amount) for name, amount in budget.agents.items()},
        {name: float(amount) for name, amount in budget.teams.items()},
    )  # fmt: skip


def _plain(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


_TAG = "costs"
ROUTES = (
    Route("GET", "/api/v1/costs", costs, "Token usage and cost.", _TAG, CostReport, query=CostsQuery, errors=(503,)),
    Route("GET", "/api/v1/costs/budget", get_budget, "The budget.", _TAG, BudgetBody, errors=(503,)),
    Route("POST", "/api/v1/costs/budget", set_budget, "Set the budget.", _TAG, BudgetBody, body=NewBudget, errors=(409, 503),
          right="budget"),
    Route("GET", "/api/v1/costs/trend", trend, "Spending over time.", _TAG, CostTrend, query=TrendQuery, errors=(503,)),
)  # fmt: skip
