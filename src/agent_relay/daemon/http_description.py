"""The OpenAPI description of the HTTP API, for whoever writes it down or prints it."""

from __future__ import annotations

from agent_relay.transports.http.openapi import encode_description
from agent_relay.transports.http.table import ROUTES


def describe_http() -> bytes:
    return encode_description(ROUTES)
