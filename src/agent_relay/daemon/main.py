"""`python -P -m agent_relay.daemon`: the daemon in the foreground, and where `agent-relay up` ends as well."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_relay.daemon.arguments import read_arguments
from agent_relay.daemon.config import Config, ConfigError, check_tls, load_config
from agent_relay.daemon.directories import AlreadyRunning, PlaceUnusable, make_private_directory
from agent_relay.daemon.logs import close_logs, logger, open_logs
from agent_relay.daemon.secret_variable import forget_api_token, hide_secrets
from agent_relay.daemon.settings import SETTINGS
from agent_relay.ports.store import StoreUnusable
from agent_relay.protocol import places
from agent_relay.transports.unix import AnotherDaemon, SocketUnusable

if TYPE_CHECKING:
    from agent_relay.daemon.server import Daemon

EXIT_FAILED = 1
_MOST_FILES = 65_536
EXIT_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    hide_secrets()
    try:
        config = parse(sys.argv[1:] if arguments is None else arguments)
        forget_api_token()  # what the daemon starts is not to have it
    except ConfigError as error:
        return _complain(str(error), EXIT_USAGE)
    return run(config)


def run(config: Config) -> int:
    try:
        make_private_directory(config.state_dir)
        open_logs(config.file(places.LOG_FILE), debug=config.debug)
    except (PlaceUnusable, OSError) as error:
        return _complain(str(error), EXIT_FAILED)
    for note in config.notes:
        logger.warning("project_file", extra={"relay_fields": {"note": note}})
    _allow_many_connections()
    try:
        _run_loop(config)
    except (AlreadyRunning, AnotherDaemon) as error:
        return _complain(f"{error} `agent-relay status` shows more.", EXIT_FAILED)
    except (PlaceUnusable, StoreUnusable, SocketUnusable) as error:
        return _complain(str(error), EXIT_FAILED)
    finally:
        close_logs()
    return 0


def _allow_many_connections() -> None:
    """Each is a file, and the usual limit of 1,024 files is for programs that are not meant to have many."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not everywhere

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _run_loop(config: Config) -> None:
    from agent_relay.daemon.server import Daemon  # noqa: PLC0415 - after the arguments are known to be good

    async def live() -> None:
        await (_make_cluster_daemon(config) if config.cluster.servers else Daemon(config)).run()

    if sys.platform == "win32":
        asyncio.run(live())
        return
    import uvloop  # noqa: PLC0415

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live())


def _make_cluster_daemon(config: Config) -> Daemon:
    try:
        from agent_relay.daemon.cluster.server import ClusterDaemon  # noqa: PLC0415 - needs an extra, and few have a cluster
    except ModuleNotFoundError as error:
        raise PlaceUnusable(f"--cluster needs the package {error.name}: pip install 'agent-relay[cluster]'.") from None
    return ClusterDaemon(config)


def parse(arguments: Sequence[str]) -> Config:
    found = read_arguments(arguments)
    home = os.path.expanduser(os.environ.get(places.ENV_HOME, places.DEFAULT_HOME))
    config = load_config(
        {setting.name: found[setting.name] for setting in SETTINGS},
        os.environ,
        project_root=os.path.realpath(found["project_root"]),
        home=os.path.abspath(home),
        state_dir=os.path.abspath(found["state_dir"]),
        socket=os.path.abspath(found["socket"]),
    )
    check_tls(config)
    return config


def _complain(sentence: str, status: int) -> int:
    sys.stderr.write(f"agent-relay: {sentence}\n")
    return status
