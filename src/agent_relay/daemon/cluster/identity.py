"""This host: its name, what it shows to NATS, what the others of its cluster hear of it, and `cluster.json`, in which its own
commands find them all."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import time
from collections.abc import Collection

import msgspec

from agent_relay.cluster.nats_wire import Credentials
from agent_relay.daemon.config import ClusterConfig
from agent_relay.daemon.directories import write_private_file
from agent_relay.daemon.logs import logger
from agent_relay.protocol.clis import KNOWN_CLIS
from agent_relay.protocol.hosts import ClusterFacts


def host_name() -> str:
    """The machine's name, as far as it can be part of a subject."""
    found = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in socket.gethostname().lower())
    return found.strip("-")[:32] or f"host-{int(time.time()):x}"


def read_credentials(config: ClusterConfig) -> Credentials:
    is_encrypted = config.ca is not None or any(server.startswith("tls:") for server in config.servers)
    context = ssl.create_default_context(cafile=config.ca) if is_encrypted else None
    return Credentials(token=config.token, creds_file=config.creds, tls=context)


def measure_load() -> float:
    """The work of the last minute for each core."""
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)


def find_clis(allowed: Collection[str]) -> list[str]:
    """The programs that agents can be started with here: those we know, and those that the owner listed."""
    return [cli for cli in sorted(KNOWN_CLIS | set(allowed)) if shutil.which(cli) is not None]


class ClusterFile:
    """Written when something in it is another than before."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._written = b""

    def write(self, facts: ClusterFacts) -> None:
        content = msgspec.json.encode(facts)
        if content == self._written:
            return
        try:
            write_private_file(self._path, content.decode() + "\n")
            self._written = content
        except OSError as error:
            logger.warning("cluster_file_failed", extra={"relay_fields": {"error": str(error)}})
