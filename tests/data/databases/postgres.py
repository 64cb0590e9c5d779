"""The same of PostgreSQL, as `pg_dump` wrote it: `python -m tests.data.databases.postgres` makes `postgres-v<schema>`."""

from __future__ import annotations

import gzip
import json
import os
import sys

from agent_relay.storage.postgres.schema import newest_version
from agent_relay.testing.daemon import DaemonProcess
from tests.data.databases import HERE
from tests.support.postgres_server import PostgresServer

_SCHEMA = "relay_as_released"
_DUMP = "relay.sql.gz"


def restore(which: str, server: PostgresServer, schema: str) -> None:
    """Puts `postgres-v1`, say, into this schema of the server."""
    dump = gzip.decompress((HERE / which / _DUMP).read_bytes()).decode()
    server.load(dump.replace(_SCHEMA, schema))


def make(which: str) -> None:
    from tests.data.databases.__main__ import Story

    server = PostgresServer()
    daemon = DaemonProcess("--heartbeat-ms=60s", "--ack-timeout-ms=60s", "--storage=postgres")
    daemon.environ = {"AGENT_RELAY_STORAGE_URL": server.url(_SCHEMA)}
    try:
        with daemon:
            story = Story(daemon)
            story.begin()
            daemon.terminate()
            story.go()
            daemon.start()
            story.end()
            daemon.kill()
            story.go()
        target = HERE / which
        target.mkdir()
        (target / _DUMP).write_bytes(gzip.compress(server.dump(_SCHEMA).encode(), 9, mtime=0))
        said = {"uid": os.geteuid(), "tokens": story.tokens, "stored": story.stored, "owed": story.owed}
        (target / "said.json").write_text(json.dumps(said, indent=1) + "\n")
    finally:
        server.remove()


if __name__ == "__main__":
    name = f"postgres-v{newest_version()}"
    if (HERE / name).exists():
        sys.exit(f"{name} is there; it was made by the release that had this schema, and is kept.")
    make(name)
