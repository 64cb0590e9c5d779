"""The process of a cluster's host: a second one for the same place leaves that of the first alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_relay.daemon.cluster.server import ClusterDaemon
from agent_relay.daemon.directories import AlreadyRunning, DirectoryLock
from agent_relay.daemon.main import parse
from agent_relay.protocol import places


def test_a_second_daemon_removes_no_file_of_the_first(tmp_path: Path) -> None:
    config = parse(
        [
            f"--state-dir={tmp_path}", f"--socket={tmp_path / 's'}", f"--project-root={tmp_path}",
            "--cluster=nats://127.0.0.1:1", "--cluster-project=demo",
        ]
    )  # fmt: skip
    files = [Path(config.file(name)) for name in (places.PID_FILE, places.CLUSTER_FILE)]
    for file in files:
        file.write_text("of the first")
    first = DirectoryLock(str(tmp_path))

    async def run() -> None:
        await ClusterDaemon(config).run()

    with pytest.raises(AlreadyRunning):
        asyncio.run(run())
    first.release()
    assert [file.read_text() for file in files] == ["of the first"] * 2
