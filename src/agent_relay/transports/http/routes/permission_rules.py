"""Rules like an open request: what one would have approved in the past days, and adding it."""

from __future__ import annotations

import asyncio

from agent_relay.events.filter import make_filter
from agent_relay.events.pages import EventQuery
from agent_relay.events.types import PermissionRequested, PermissionResolved
from agent_relay.ports.permission_rules import PermissionRules
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.protocol.requests import PermissionRequest
from agent_relay.protocol.tool_names import kind_of
from agent_relay.transports.http.api import Api, need
from agent_relay.transports.http.bodies import LikeThis
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.routes.agents import find_name
from agent_relay.transports.http.routes.events import read_all_events
from agent_relay.transports.http.views import PastRequest, RulePreview

_LOOKED_BACK_MS = 7 * 86_400_000
_PAGE = 1_000
_SHOWN = 50  # the newest
_WHAT = "rules that are added here, since each host of a cluster has a file of its own"


async def preview(api: Api, call: Call) -> RulePreview:
    """Nothing is changed. A pattern that cannot be a rule has the reason in `problem`."""
    rules, asked = need(api.permission_rules, _WHAT), _find(api, call)
    shape = rules.shape(asked)
    wanted: LikeThis = call.body
    pattern = wanted.pattern or shape.exact
    since = api.wall_ms() - _LOOKED_BACK_MS
    shown = RulePreview(pattern, shape.tool, shape.about, shape.exact, shape.wider, since)
    try:
        rules.check(asked, pattern)
    except RelayError as error:
        shown.problem = error.message
        return shown
    found, shown.looked = await _look_back(api, rules, asked, pattern, since)
    shown.count, shown.found = len(found), found[-_SHOWN:][::-1]
    shown.denied = sum(each.outcome == "denied" for each in found)
    return shown


async def add(api: Api, call: Call) -> RulePreview:
    """The rule holds from now on. The request stays open: it is still to be decided."""
    rules, asked = need(api.permission_rules, _WHAT), _find(api, call)
    shape = rules.shape(asked)
    pattern = call.body.pattern or shape.exact
    path = await asyncio.to_thread(rules.add, asked, pattern)
    return RulePreview(pattern, shape.tool, shape.about, shape.exact, shape.wider, api.wall_ms(), path=path)


def _find(api: Api, call: Call) -> PermissionRequest:
    name, id_ = find_name(api, call.names["name"]), call.names["requestId"]
    for found in api.service.requests(name):
        if found.request.id == id_ and isinstance(found.request, PermissionRequest):
            return found.request
    raise RelayError(ErrorCode.ROUTE_NOT_FOUND, f"{name} has no open permission request {show(id_, 80)}.")


async def _look_back(
    api: Api, rules: PermissionRules, asked: PermissionRequest, pattern: str, since: int
) -> tuple[list[PastRequest], int]:
    """Those that it would have approved, and how many there were. Where a file really was is no longer known, so its path is
    taken at its word: at worst too many are found."""
    found: dict[tuple[str, str], PastRequest] = {}
    looked, kind = 0, kind_of(asked.tool)
    query = EventQuery(make_filter(["permission.requested", "permission.resolved"]), since_ms=since, limit=_PAGE)
    async for event in read_all_events(api, query):
        if isinstance(event, PermissionResolved):
            known = found.get((event.session_id, event.request_id))
            if known is not None:
                known.outcome, known.resolved_by = event.resolution, event.resolved_by
        elif isinstance(event, PermissionRequested):
            looked += 1
            past = PermissionRequest(
                event.request_id, event.description, event.tool, event.command, event.file_path, real_path=event.file_path,
                project_root=asked.project_root, is_exact=True,
            )  # fmt: skip
            if kind_of(event.tool) == kind and rules.would_approve(asked, pattern, past) and not rules.approves(past):
                subject = event.command or event.file_path or event.description
                found[event.session_id, event.request_id] = PastRequest(event.ts, event.by_agent, event.tool, subject)
    return list(found.values()), looked


_TAG = "permissions"
_LIKE = "/api/v1/agents/{name}/permissions/{requestId}/rule"
_FAILS = (404, 422, 503)
ROUTES = (
    Route("POST", _LIKE + "/preview", preview, "What a rule like this request would have approved.", _TAG, RulePreview,
          body=LikeThis, needs_body=False, errors=_FAILS),
    Route("POST", _LIKE, add, "Add a rule that approves requests like this one.", _TAG, RulePreview, 201, body=LikeThis,
          needs_body=False, errors=_FAILS),
)  # fmt: skip
