"""The table of all routes."""

from __future__ import annotations

import re

from agent_relay.transports.http.route import Route
from agent_relay.transports.http.routes import (
    about,
    agents,
    arc,
    channels,
    cost_trend,
    costs,
    dashboard,
    data,
    events,
    legacy,
    messages,
    outline,
    page_keys,
    requests,
    sessions,
    terminals,
)

ROUTES: tuple[Route, ...] = (
    *dashboard.ROUTES, *about.ROUTES, *page_keys.ROUTES, *sessions.ROUTES, *agents.ROUTES, *data.ROUTES, *terminals.ROUTES,
    *requests.ROUTES, *events.ROUTES, *outline.ROUTES, *messages.ROUTES, *channels.ROUTES, *costs.ROUTES, *cost_trend.ROUTES,
    *legacy.ROUTES, *arc.ROUTES,
)  # fmt: skip
FLAT_PATHS = frozenset(route.path for route in ROUTES if route.is_flat)
OPEN_PATHS = frozenset((route.method, route.path) for route in ROUTES if route.is_open)
OPEN_FOLDERS = tuple(route.path.removesuffix("{path}") for route in ROUTES if route.is_open and route.path.endswith("{path}"))
_SHAPES = [
    (re.compile(re.sub(r"{\w+}", "[^/]+", route.path.replace("{path}", ".+"))), route.method) for route in ROUTES
]  # fmt: skip


def methods_at(path: str) -> list[str]:
    """What can be done at that path; nothing where there is nothing."""
    return sorted({method for shape, method in _SHAPES if shape.fullmatch(path)})
