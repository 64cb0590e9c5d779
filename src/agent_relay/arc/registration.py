"""Getting an identity at a relay, renewing its token, and giving it up."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Any

from agent_relay.arc.addresses import parse_address
from agent_relay.arc.errors import ArcRefused
from agent_relay.arc.http_calls import expect


@dataclass(frozen=True, slots=True)
class Registration:
    agent_id: str
    token: str = field(repr=False)  # whoever has it is this agent


async def register(
    url: str, agent_id: str | None = None, *, invite: str | None = None, api_token: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> Registration:  # fmt: skip
    """Registers under `agent_id`, or under one that the relay picks. Raises ArcRefused (`agent_id_taken`, `unauthorized`, …).

    A relay that is not open to everybody asks for an invitation, or for the token of its API.
    """
    body = registration_body(agent_id, invite)
    return _read(await expect(parse_address(url).http_url, "POST", "/register", body=body, token=api_token, tls=tls))


def registration_body(agent_id: Any, invite: str | None) -> dict[str, Any]:
    return {name: value for name, value in (("agent_id", agent_id), ("invite", invite)) if value is not None}


async def refresh_token(url: str, token: str, *, tls: ssl.SSLContext | None = None) -> Registration:
    """A new token for the same agent; the old one serves for a minute more."""
    return _read(await expect(parse_address(url).http_url, "POST", "/token/refresh", token=token, tls=tls))


async def unregister(url: str, token: str, *, tls: ssl.SSLContext | None = None) -> None:
    """Revokes the token and ends its connection. The id stays taken."""
    await expect(parse_address(url).http_url, "DELETE", "/register", token=token, tls=tls)


def _read(said: dict[str, Any]) -> Registration:
    agent_id, token = said.get("agent_id"), said.get("token")
    if not isinstance(agent_id, str) or not isinstance(token, str) or not token:
        raise ArcRefused("The response has no id and token; is this an ARC relay?", code="invalid_answer")
    return Registration(agent_id, token)
