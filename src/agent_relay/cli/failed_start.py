"""After an agent that never ran: the name it took and the daemon that was started for it go again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from agent_relay.cli.failures import Failure
from agent_relay.protocol.errors import RelayError

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place

_STOP_S = 5.0


def clear_up(place: Place, wrapper_pid: int, began_ms: int, own_daemon: int | None) -> None:
    """`own_daemon`: the pid of the one that was started for it. Fails quietly: there is a better reason to tell."""
    from agent_relay.cli.commands.down import stop
    from agent_relay.cli.link import run

    with contextlib.suppress(RelayError, Failure, OSError):
        is_used = run(_remove_name(place, wrapper_pid, began_ms))
        if own_daemon is not None and not is_used:
            stop(own_daemon, _STOP_S)


async def _remove_name(place: Place, wrapper_pid: int, began_ms: int) -> bool:
    """Whether somebody else uses the daemon."""
    from agent_relay.cli.link import observe

    async with observe(place) as relay:
        agents = (await relay.agents()).agents
        for agent in agents:
            is_its = agent.meta.get("pid") == wrapper_pid and agent.registered_at >= began_ms
            if is_its and not agent.connected and not agent.queue_depth:
                await relay.remove(agent.name)
        return any(agent.connected for agent in agents)
