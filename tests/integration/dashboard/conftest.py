"""The same servers as for the tests of the HTTP API."""

from __future__ import annotations

from tests.integration.http_api.conftest import http, server, start_server

__all__ = ["http", "server", "start_server"]
