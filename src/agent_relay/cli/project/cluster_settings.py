"""The settings of a project's cluster, as its daemon was started last, for commands that speak to NATS themselves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.foreground import daemon_arguments
from agent_relay.sdk.locate import Place

if TYPE_CHECKING:
    from agent_relay.daemon.config import Config


def read_cluster_settings(place: Place) -> Config | None:
    """None for a project without a cluster. The token is no part of what is kept: it comes from the environment."""
    from agent_relay.daemon.config import ConfigError
    from agent_relay.daemon.main import parse
    from agent_relay.daemon.project_record import ProjectRecord, read_record

    record = read_record(place.state_dir) or ProjectRecord()
    for name, value in record.variables.items():
        os.environ.setdefault(name, value)
    try:
        config = parse(daemon_arguments(place.socket, place.state_dir, place.root, record.flags))
    except ConfigError as error:
        raise Failure(str(error), USAGE) from None
    return config if config.cluster.servers else None
