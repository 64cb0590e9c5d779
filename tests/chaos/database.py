"""The PostgreSQL server of a run, whose daemon keeps its messages there, and the ways to hurt it.

Only processes die here, never the machine: so the server runs without `fsync`, and everything it has committed is still there.
"""

from __future__ import annotations

import os
import signal

from tests.support.postgres_server import ESCAPED_PASSWORD, PostgresServer, fresh_schema

_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'relay'"


class Database:
    def __init__(self) -> None:
        self._server = PostgresServer()
        self._schema = fresh_schema()
        self.environ = {"AGENT_RELAY_STORAGE_URL": self._server.url(self._schema, "relay", ESCAPED_PASSWORD)}

    def end_connections(self) -> None:
        """All of the daemon's, in the middle of whatever they do."""
        self._server.psql(_END)

    def signal_writer(self, number: signal.Signals) -> bool:
        """The server's process that writes for the daemon; False while there is none."""
        pids = self._server.writer_pids(self._schema)
        for pid in pids:
            os.kill(pid, number)
        return bool(pids)

    def stop(self, number: signal.Signals) -> None:
        self._server.stop(number)

    def start(self) -> None:
        self._server.start()

    def answers(self) -> bool:
        return self._server.answers()

    def remove(self) -> None:
        self._server.remove()
