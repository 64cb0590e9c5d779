"""The store in a database: loaded by nobody who does not use it, and missed with a sentence that helps."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import sys
import agent_relay.daemon.server, agent_relay.cli.commands.up
print([name for name in sys.modules if name.startswith(("asyncpg", "agent_relay.storage.postgres"))])
"""
_MISSING = """
import sys
sys.modules["asyncpg"] = None
from agent_relay.ports.store import StoreUnusable
try:
    import agent_relay.storage.postgres.store
except StoreUnusable as error:
    print(error)
"""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120).stdout.strip()


def test_without_postgres_neither_the_driver_nor_the_store_is_loaded() -> None:
    assert run(_LOADED) == "[]"


def test_a_driver_that_is_not_installed_is_named_with_the_way_to_install_it() -> None:
    assert "pip install 'agent-relay[postgres]'" in run(_MISSING)
