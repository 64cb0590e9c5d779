"""Connections of commands to the daemon: as an observer for looking, as an agent for sending and receiving."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from agent_relay.cli.failures import Failure
from agent_relay.cli.interrupts import run_until_interrupted
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.person import person
from agent_relay.cli.project.cluster_file import read_cluster
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, spare_names
from agent_relay.protocol.places import ENV_NAME
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.locate import Place
from agent_relay.sdk.views import AgentsView

CONNECT_TIMEOUT_S = 5.0
_NAME_WAIT_S = 1.5  # another command under the same name is usually over by then
_NAME_RETRY_S = 0.1
_CLI = "agent-relay"


run = run_until_interrupted  # every command that waits for something


def observe(place: Place) -> RelayClient:
    """One that only looks; it gives up at once when the daemon goes away."""
    return RelayClient(socket=place.socket, observer=True, reconnect_attempts=0, connect_timeout=CONNECT_TIMEOUT_S)


async def ask_agents(place: Place | str) -> AgentsView:
    """The agents that the daemon at this place or socket knows."""
    socket = place if isinstance(place, str) else place.socket
    async with RelayClient(socket=socket, observer=True, reconnect_attempts=0, connect_timeout=CONNECT_TIMEOUT_S) as relay:
        view = await relay.agents()
    if not isinstance(place, str) and (cluster := read_cluster(place.state_dir)) is not None and cluster.seat != cluster.host:
        _tell_from_here(view.server, place, cluster.seat)
    return view


def _tell_from_here(server: dict[str, Any], place: Place, seat: str) -> None:
    """Another host of the cluster has answered: the project is the one here, and the files it names are there."""
    server |= {"project": place.root, "project_name": place.name}
    storage = server.get("storage") or {}
    if storage.get("location"):
        storage["location"] = f"{storage['location']} on host {seat}"


def own_name(given: str | None, environ: Mapping[str, str] = os.environ) -> tuple[str, bool]:
    """The name to speak as, and whether it is the person's own, which others may stand in for."""
    name = given or environ.get(ENV_NAME)
    if name:
        check_agent_name(name)
        return name, False
    return person(), True


async def connect_as(
    place: Place, given: str | None, *, max_inflight: int, reconnect_attempts: int = 0, transient: bool = True
) -> RelayClient:
    """Connected under the name, or under one that stands in for it where it is the person's own. `transient`: that we come and
    go is no event."""
    name, is_persons = own_name(given)
    deadline = asyncio.get_running_loop().time() + _NAME_WAIT_S
    for candidate in spare_names(name) if is_persons else [name]:
        while True:
            client = RelayClient(
                candidate, socket=place.socket, state_dir=place.state_dir, cli=_CLI if is_persons else None,
                max_inflight=max_inflight, reconnect_attempts=reconnect_attempts, connect_timeout=CONNECT_TIMEOUT_S,
                meta={"transient": True} if transient else None, default_channels=not transient,
            )  # fmt: skip
            try:
                await client.connect()
                return client
            except RelayError as error:
                if not is_name_in_use(error):
                    raise
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(_NAME_RETRY_S)
    raise NameInUse(name)


class NameInUse(Failure):
    def __init__(self, name: str) -> None:
        super().__init__(f"{clean_line(name)} is connected elsewhere right now.")
        self.name = name


def is_name_in_use(error: RelayError) -> bool:
    return error.code is ErrorCode.PERMISSION_DENIED and error.details.get("reason") == "name_in_use"
