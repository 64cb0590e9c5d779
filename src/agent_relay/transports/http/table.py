"""The table of all routes."""

from __future__ import annotations

import re

from agent_relay.transports.http.route import Route
from agent_relay.transports.http.routes import about, agents, costs, events, legacy, messages, requests, sessions

ROUTES: tuple[Route, ...] = (
    *about.ROUTES, *sessions.ROUTES, *agents.ROUTES, *requests.ROUTES, *events.ROUTES, *messages.ROUTES, *costs.ROUTES,
    *legacy.ROUTES,
)  # fmt: skip
OPEN_PATHS = frozenset(route.path for route in ROUTES if route.is_open)
_SHAPES = [(re.compile(re.sub(r"{\w+}", "[^/]+", route.path)), route.method) for route in ROUTES]


def methods_at(path: str) -> list[str]:
    """What can be done at that path; nothing where there is nothing."""
    return sorted({method for shape, method in _SHAPES if shape.fullmatch(path)})
