"""`project.json` in the state directory of a daemon that runs.

For `restart`, for `projects`, and for the daemon after it, which takes the same port again.
"""

from __future__ import annotations

import msgspec

from agent_relay.daemon.config import Config
from agent_relay.daemon.directories import write_private_file
from agent_relay.daemon.logs import logger
from agent_relay.daemon.project_record import ProjectRecord, read_record
from agent_relay.protocol import places


class ProjectFile:
    """The record of a daemon that runs."""

    def __init__(self, config: Config, now_ms: int) -> None:
        before = read_record(config.state_dir)
        self._path = config.file(places.PROJECT_FILE)
        self._record = ProjectRecord(
            config.project_root, config.socket, dict(config.flags), dict(config.variables), now_ms, before.port if before else 0
        )  # fmt: skip

    @property
    def last_port(self) -> int:
        return self._record.port

    def note_port(self, port: int) -> None:
        if port != self._record.port:
            self._record.port = port
            self.write()

    def write(self) -> None:
        try:
            write_private_file(self._path, msgspec.json.format(msgspec.json.encode(self._record), indent=2).decode() + "\n")
        except OSError as error:
            logger.warning("project_file_failed", extra={"relay_fields": {"error": str(error)}})
