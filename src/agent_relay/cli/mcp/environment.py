"""The variables by which a wrapper tells its agent who it is, as a server that the agent's CLI has started finds them: set, as
names that nobody expanded, or not at all.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from agent_relay.cli.wrapper.outbox_commands import ENV_OUTBOX
from agent_relay.protocol.places import ENV_HOME, ENV_NAME, ENV_PREFIX, ENV_PROJECT, ENV_SOCKET, ENV_TOKEN

HANDED_DOWN = (ENV_NAME, ENV_TOKEN, ENV_SOCKET, ENV_PROJECT, ENV_HOME, ENV_OUTBOX)
_WHO = frozenset({ENV_NAME, ENV_TOKEN, ENV_OUTBOX})


def restore(environ: MutableMapping[str, str] = os.environ) -> None:
    """Makes it what the wrapper made it. Whose word the tools have afterwards is judged by the wrapper and the daemon as ever."""
    _forget_unset(environ)
    if _WHO.isdisjoint(environ):
        from agent_relay.daemon.processes import find_environment_above

        above = find_environment_above(ENV_TOKEN)
        environ.update({name: above[name] for name in HANDED_DOWN if name in above})


def _forget_unset(environ: MutableMapping[str, str]) -> None:
    """Drops variables of ours that stand for nothing: a CLI that was told to pass `$AGENT_RELAY_NAME` on, and has no such
    variable, passes on just that."""
    for name, value in list(environ.items()):
        if name.startswith(ENV_PREFIX) and (not value or value.strip("${}").partition(":")[0] == name):
            del environ[name]
