"""Costs: what was used, and budgets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from decimal import Decimal

from agent_relay.events.budgets import Budget
from agent_relay.events.costs import CostBook, CostReport, Usage, read_usage
from agent_relay.events.filter import make_filter
from agent_relay.events.paging import EventQuery
from agent_relay.events.types import TokensUsed
from agent_relay.transports.http.api import Api, need
from agent_relay.transports.http.bodies import BudgetBody, CostsQuery
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.routes.events import read_all_events

_PAGE = 1_000
_BUDGETS = "budgets"


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


async def get_budget(api: Api, call: Call) -> BudgetBody:
    del call
    return _show(need(api.budgets, _BUDGETS).current())


async def set_budget(api: Api, call: Call) -> BudgetBody:
    asked: BudgetBody = call.body
    budgets = need(api.budgets, _BUDGETS)
    budgets.set(
        Budget(
            max_per_hour=_exact(asked.max_per_hour),
            max_per_session=_exact(asked.max_per_session),
            max_total=_exact(asked.max_total),
            alert_threshold=_exact(asked.alert_threshold),
            action=asked.action,
        )
    )
    return _show(budgets.current())


def _exact(amount: float | None) -> Decimal | None:
    return None if amount is None else Decimal(str(amount))


def _show(budget: Budget) -> BudgetBody:
    return BudgetBody(
        _plain(budget.max_per_hour), _plain(budget.max_per_session), _plain(budget.max_total), _plain(budget.alert_threshold),
        budget.action,
    )  # fmt: skip


def _plain(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)


_TAG = "costs"
ROUTES = (
    Route("GET", "/api/v1/costs", costs, "Tokens and what they cost.", _TAG, CostReport, query=CostsQuery, errors=(503,)),
    Route("GET", "/api/v1/costs/budget", get_budget, "The budget.", _TAG, BudgetBody, errors=(503,)),
    Route(
        "POST",
        "/api/v1/costs/budget",
        set_budget,
        "Set the budget.",
        _TAG,
        BudgetBody,
        body=BudgetBody,
        errors=(503,),
        right="budget",
    ),
)
