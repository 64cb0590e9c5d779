"""The place where HTTP listens: its port, the same as the last time where it can be had, and `http.json`, which tells everybody
where it is, or why there is none."""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

from agent_relay.daemon.config import Config
from agent_relay.daemon.directories import remove_file, write_private_file
from agent_relay.daemon.logs import logger
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.daemon.project_record import find_port_holder
from agent_relay.protocol import places
from agent_relay.transports.http.port import PortTaken, PortUnusable, make_url, open_free_port, open_port

_EXPOSED = (
    "HTTP is served beyond this machine without TLS: tokens and messages can be read in transit. Use --tls-cert and --tls-key."
)
_NO_AUTH = "HTTP needs no token (--no-auth): every user of this machine can read messages, type, and start programs as you."


class HttpPlace:
    def __init__(self, config: Config, project: ProjectFile) -> None:
        self._config = config
        self._project = project
        remove_file(self._file)  # of an earlier life

    @property
    def _file(self) -> str:
        return self._config.file(places.HTTP_FILE)

    @property
    def is_wanted(self) -> bool:
        return self._config.http

    def listen(self) -> socket.socket | None:
        """Blocks. Raises PortUnusable. None, as only others have it: it serves without a port of its own."""
        config = self._config
        if config.port is None:
            return open_free_port(config.host, self._project.last_port)
        try:
            return open_port(config.host, config.port)
        except PortTaken as error:
            holder = find_port_holder(config.home, config.port)
            advice = holder or f"To see who listens there: ss -ltnp 'sport = :{config.port}'"
            raise PortUnusable(f"{error} {advice}") from None

    def announce(self, port: int) -> None:
        config = self._config
        url = make_url(config.host, port, "http" if config.tls is None else "https")
        self._say({"url": url, "host": config.host, "port": port, "certificate": config.tls_cert} | self._warn())
        self._project.note_port(port)
        logger.info("http", extra={"relay_fields": {"url": url}})

    def refuse(self, reason: str) -> None:
        """There is no HTTP, and this is why."""
        self._say({"url": None, "reason": reason})

    def leave(self) -> None:
        remove_file(self._file)

    def _warn(self) -> dict[str, str]:
        """A warning that everybody should see."""
        config = self._config
        if not (config.is_exposed or config.no_auth):
            return {}
        warning = _EXPOSED if config.is_exposed else _NO_AUTH
        logger.warning("http_exposed", extra={"relay_fields": {"host": config.host, "reason": warning}})
        sys.stderr.write(f"agent-relay: WARNING: {warning}\n")
        return {"warning": warning}

    def _say(self, content: dict[str, Any]) -> None:
        try:
            write_private_file(self._file, json.dumps(content) + "\n")
        except OSError as error:
            logger.warning("http_file_failed", extra={"relay_fields": {"error": str(error)}})
