"""A folder for sockets, and daemons that are seen over HTTP."""

from __future__ import annotations

from tests.integration.conftest import folder  # noqa: F401 - a fixture
from tests.integration.http_api.conftest import start_server  # noqa: F401 - a fixture
