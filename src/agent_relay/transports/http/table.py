"""The table of all routes, and which of them an address means."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agent_relay.protocol.errors import ErrorCode
from agent_relay.transports.http.errors import HttpError, wrong_method
from agent_relay.transports.http.route import Route
from agent_relay.transports.http.routes import (
    about,
    agents,
    arc,
    channels,
    costs,
    dashboard,
    data,
    events,
    legacy,
    marks,
    mcp,
    messages,
    permission_rules,
    proposals,
    requests,
    sessions,
    terminals,
)

ROUTES: tuple[Route, ...] = (
    *about.ROUTES, *dashboard.ROUTES, *marks.ROUTES, *sessions.ROUTES, *agents.ROUTES, *data.ROUTES,
    *terminals.ROUTES, *requests.ROUTES, *permission_rules.ROUTES,
    *events.ROUTES, *messages.ROUTES, *channels.ROUTES, *proposals.ROUTES, *costs.ROUTES,
    *mcp.ROUTES, *legacy.ROUTES, *arc.ROUTES,
)  # fmt: skip
FLAT_PATHS = frozenset(route.path for route in ROUTES if route.is_flat)
OPEN_PATHS = frozenset((route.method, route.path) for route in ROUTES if route.is_open)
OPEN_FOLDERS = tuple(route.path.removesuffix("{path}") for route in ROUTES if route.is_open and route.path.endswith("{path}"))
_SHAPES = [
    (re.compile(re.sub(r"{\w+}", "[^/]+", route.path.replace("{path}", ".+"))), route.method) for route in ROUTES
]  # fmt: skip


def methods_at(path: str) -> list[str]:
    """The methods of that path; nothing where there is nothing."""
    return sorted({method for shape, method in _SHAPES if shape.fullmatch(path)})


class _Node:
    """A part of a path, and what may follow it. A word goes before a name: `/agents/by-name` is nobody's."""

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.name: _Node | None = None
        self.rest: _Node | None = None  # all that follows
        self.routes: dict[str, Route] = {}  # that end here, by method

    def follow(self, part: str) -> _Node:
        """The node for that part of a route's path, made where it is missing."""
        if part == "{path}":
            self.rest = self.rest or _Node()
            return self.rest
        if part.startswith("{"):
            self.name = self.name or _Node()
            return self.name
        return self.words.setdefault(part, _Node())


def _plant(routes: Iterable[Route]) -> _Node:
    tree = _Node()
    for route in routes:
        node = tree
        for part in filter(None, route.path.split("/")):
            node = node.follow(part)
        node.routes[route.method] = route
    return tree


_TREE = _plant(ROUTES)


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route, and what its path names. Slashes too many, and one at the end, make no difference. Raises HttpError."""
    node, values = _TREE, []
    parts = [part for part in path.split("/") if part]
    for at, part in enumerate(parts):
        if part in node.words:
            node = node.words[part]
        elif node.name is not None:
            node = node.name
            values.append(part)
        elif node.rest is not None:
            node = node.rest
            values.append("/".join(parts[at:]))
            break
        else:
            raise HttpError(404, ErrorCode.ROUTE_NOT_FOUND)
    if not node.routes:
        raise HttpError(404, ErrorCode.ROUTE_NOT_FOUND)
    if method not in node.routes:
        raise wrong_method(methods_at(path))
    route = node.routes[method]
    return route, dict(zip(route.names, values, strict=True))
