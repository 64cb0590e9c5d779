"""What is done to a PostgreSQL server while a daemon stores its agents' messages there."""

from __future__ import annotations

import asyncio
import signal

from tests.chaos.database import Database
from tests.chaos.stage import Stage

_BACK_S = 60.0  # until a server that has crashed answers again


async def hurt_database(stage: Stage) -> None:
    assert stage.database is not None
    await stage.let_it_run(0.3, 1.5)
    fault = stage.random.choice((_end_connections, _restart, _crash, _hang))
    name = f"database: {fault.__name__.strip('_')}"
    stage.history.fault(name)
    await fault(stage, stage.database)
    stage.history.fault(name, ends=True)


async def _end_connections(stage: Stage, database: Database) -> None:
    """pg_terminate_backend, again and again. As often as not the daemon is killed then, right after it or a moment later: the
    next one knows no more than what was stored."""
    for _ in range(stage.random.randrange(1, 12)):
        await asyncio.to_thread(database.end_connections)
        await stage.let_it_run(0.0, 0.3)
    if stage.random.random() < 0.5:
        await asyncio.to_thread(database.end_connections)
        await stage.let_it_run(0.0, stage.random.choice((0.01, 0.3)))
        await stage.kill_daemon()
        await stage.start_daemon()


async def _restart(stage: Stage, database: Database) -> None:
    """In order, or so that the server has to recover. The daemon is killed before, meanwhile, or not at all."""
    kills = stage.random.choice(("before", "meanwhile", "never", "never"))
    if kills == "before":
        await stage.kill_daemon()
    await asyncio.to_thread(database.stop, stage.random.choice((signal.SIGINT, signal.SIGQUIT)))
    await stage.let_it_run(0.0, stage.random.choice((0.2, 3.0)))
    if kills == "meanwhile":
        await stage.kill_daemon()
    await asyncio.to_thread(database.start)
    if kills != "never":
        await stage.start_daemon()


async def _crash(stage: Stage, database: Database) -> None:
    """kill -9 of the process that writes: the server ends all the others, and recovers."""
    await asyncio.to_thread(database.signal_writer, signal.SIGKILL)
    if stage.random.random() < 0.5:
        await stage.kill_daemon()
        assert await _comes_back(stage, database)
        await stage.start_daemon()


async def _comes_back(stage: Stage, database: Database) -> bool:
    for _ in range(int(_BACK_S / 0.1)):
        if await asyncio.to_thread(database.answers):
            return True
        await stage.let_it_run(0.1, 0.1)
    return False


async def _hang(stage: Stage, database: Database) -> None:
    """SIGSTOP of the process that writes: whatever was asked of it is answered late."""
    await asyncio.to_thread(database.signal_writer, signal.SIGSTOP)
    try:
        await stage.let_it_run(0.2, stage.random.choice((0.5, 4.0)))
    finally:
        await asyncio.to_thread(database.signal_writer, signal.SIGCONT)
