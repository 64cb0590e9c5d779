"""ARC over HTTP: registering, refreshing a token, signing off; what an administrator sees. The WebSocket itself is at /arc."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from agent_relay.protocol.encode import encode_json
from agent_relay.transports.arc.answers import (
    ArcAgentList,
    Freed,
    InvitationList,
    NewInvitation,
    Registered,
    Revoked,
    Withdrawn,
)
from agent_relay.transports.arc.desk import Desk, Unwelcome
from agent_relay.transports.arc.invitations import MOST_USES
from agent_relay.transports.arc.settings import ArcLimits
from agent_relay.transports.arc.upgrade import ARC_PATH, read_bearer
from agent_relay.transports.http.api import Api, need
from agent_relay.transports.http.errors import FlatError
from agent_relay.transports.http.guard import NOT_JSON, is_json, is_token
from agent_relay.transports.http.route import JSON, Call, Route, Text

T = TypeVar("T")
_USUAL_INVITATION_MS, _LONGEST_INVITATION_MS = 24 * 3_600_000, 365 * 24 * 3_600_000

AgentId = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]*[a-z0-9]$", min_length=3, max_length=64)]


class RegisterBody(Struct):
    agent_id: AgentId | None = None  # without one the relay picks a free one
    invite: str | None = None  # the code of an invitation, for who has no API token


class InvitationBody(Struct, forbid_unknown_fields=True):
    agent_id: AgentId | None = None  # the one id that it is for; without one any
    uses: Annotated[int, Meta(ge=1, le=MOST_USES)] = 1
    lasts_ms: Annotated[int, Meta(ge=1_000, le=_LONGEST_INVITATION_MS)] = _USUAL_INVITATION_MS


# --- agents themselves ---------------------------------------------------------------------------------------------------


async def register(api: Api, call: Call) -> Registered | Text:
    async def answer() -> Registered:
        wanted, invite = _read_wish(call)
        is_owner = api.token_hash is None or is_token(api.token_hash, _token(call))
        return await _desk(api).register(wanted, invite, call.address, is_owner=is_owner)

    return await _flat(answer())


async def refresh(api: Api, call: Call) -> Registered | Text:
    async def answer() -> Registered:
        return await _desk(api).refresh(_token(call), call.address)

    return await _flat(answer())


async def sign_off(api: Api, call: Call) -> Revoked | Text:
    async def answer() -> Revoked:
        return await _desk(api).sign_off(_token(call), call.address)

    return await _flat(answer())


async def not_upgraded(api: Api, call: Call) -> Text:
    del api, call

    async def answer() -> Text:
        raise Unwelcome(426, "upgrade_required", "This is a WebSocket; ask for an upgrade.")

    return await _flat(answer())


def _desk(api: Api) -> Desk:
    if api.arc is None:
        raise Unwelcome(503, "unavailable", "ARC is not available on this relay now.", retry_after_s=60)
    return api.arc


def _token(call: Call) -> str:
    return read_bearer(call.headers.get("authorization", ""))


def _read_wish(call: Call) -> tuple[str | None, str | None]:
    """The id that is wanted, and the invitation."""
    if not call.body:
        return None, None
    try:
        found = msgspec.json.decode(call.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unwelcome(400, "invalid_json", "The body must be a JSON object, or empty.")
    if not is_json(call.headers.get("content-type")):
        raise Unwelcome(415, "unsupported_media_type", NOT_JSON)
    wanted, invite = found.get("agent_id"), found.get("invite")
    if wanted is not None and not isinstance(wanted, str):
        raise Unwelcome(400, "invalid_agent_id", "`agent_id` must be a string.")
    if invite is not None and not isinstance(invite, str):
        raise Unwelcome(400, "invalid_json", "`invite` must be a string.")
    return wanted, invite


async def _flat(answer: Awaitable[T]) -> T | Text:
    try:
        return await answer
    except Unwelcome as refusal:
        body = encode_json(FlatError(refusal.error, refusal.message))
        return Text(body, JSON, refusal.status, tuple(refusal.headers()))


# --- administration ------------------------------------------------------------------------------------------------------


async def limits(api: Api, call: Call) -> ArcLimits:
    del call
    return need(api.arc, "ARC").settings.describe()


async def list_agents(api: Api, call: Call) -> ArcAgentList:
    del call
    return ArcAgentList(need(api.arc, "ARC").list_agents())


async def revoke(api: Api, call: Call) -> Revoked:
    return await need(api.arc, "ARC").revoke(call.names["id"])


async def free(api: Api, call: Call) -> Freed:
    return await need(api.arc, "ARC").free(call.names["id"])


async def invite(api: Api, call: Call) -> NewInvitation:
    body = call.body or InvitationBody()
    return await need(api.arc, "ARC").invite(body.agent_id, body.uses, body.lasts_ms)


async def list_invitations(api: Api, call: Call) -> InvitationList:
    del call
    return InvitationList(need(api.arc, "ARC").list_invitations())


async def withdraw(api: Api, call: Call) -> Withdrawn:
    return await need(api.arc, "ARC").withdraw(call.names["id"])


_TAG = "arc"
_BEARER = "Authorized with the agent's own token, as `Authorization: Bearer …`."
_REGISTERING = "With the API token, as `Authorization: Bearer …`, or with an invitation; open to all with `--arc-open`."
ROUTES = (
    Route("POST", "/register", register, "Register an agent; its token is shown only once.", _TAG, Registered, body=RegisterBody,
          needs_body=False, errors=(400, 401, 409, 429, 503), is_open=True, is_flat=True, right="names",
          description=_REGISTERING),
    Route("DELETE", "/register", sign_off, "Revoke the registration and disconnect.", _TAG, Revoked, errors=(401, 429, 503),
          is_open=True, is_flat=True, description=_BEARER),
    Route("POST", "/token/refresh", refresh, "Get a new token; the old one can connect for another minute.", _TAG, Registered,
          errors=(401, 429, 503), is_open=True, is_flat=True, description=_BEARER),
    Route("GET", ARC_PATH, not_upgraded, "The WebSocket.", _TAG, FlatError, status=426, is_open=True, is_flat=True,
          is_described=False),
    Route("GET", "/api/v1/arc/limits", limits, "The limits per agent and per address.", _TAG, ArcLimits, errors=(503,),
          is_open=True),
    Route("GET", "/api/v1/arc/agents", list_agents, "All registrations, even revoked ones.", _TAG, ArcAgentList, errors=(503,)),
    Route("DELETE", "/api/v1/arc/agents/{id}", revoke, "Revoke a registration; its id stays taken.", _TAG, Revoked,
          errors=(404, 409, 503)),
    Route("POST", "/api/v1/arc/agents/{id}/free", free, "Revoke a registration and let anybody register its id.", _TAG, Freed,
          errors=(404, 503)),
    Route("POST", "/api/v1/arc/invitations", invite, "Create an invitation; its code is shown only once.", _TAG, NewInvitation,
          status=201, body=InvitationBody, needs_body=False, errors=(422, 429, 503)),
    Route("GET", "/api/v1/arc/invitations", list_invitations, "Open invitations, without their codes.", _TAG,
          InvitationList, errors=(503,)),
    Route("DELETE", "/api/v1/arc/invitations/{id}", withdraw, "Withdraw an invitation.", _TAG, Withdrawn, errors=(404, 503)),
)  # fmt: skip
