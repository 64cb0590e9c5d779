"""The programs that agents may be started with here: whether each is installed, and how careful it can be."""

from __future__ import annotations

import shutil
from collections.abc import Collection

from agent_relay.ports.watchers import StartableCli
from agent_relay.protocol.clis import INSTALLERS, KNOWN_CLIS
from agent_relay.protocol.models import takes_model
from agent_relay.protocol.permission_modes import modes_of


def list_clis(allowed: Collection[str], unattended: Collection[str]) -> list[StartableCli]:
    """Those that are installed first. Permission modes in which nobody is asked are there only where the owner allows them."""
    found = [
        StartableCli(
            name,
            shutil.which(name) is not None,
            [mode for mode, options in modes_of(name).items() if not options.asks_nobody or mode in unattended],
            takes_model(name),
            INSTALLERS.get(name, ""),
        )
        for name in sorted(KNOWN_CLIS | set(allowed))
    ]
    return sorted(found, key=lambda cli: not cli.is_installed)
