"""The faults: what is done to a daemon while its agents talk. A family is one kind of fault; a cycle does it once.

Each is told to the history when it begins and when it is over. What exactly happens, and when, is drawn by the stage's dice.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
from tests.chaos.database_faults import hurt_database
from tests.chaos.habits import Habits
from tests.chaos.history import Entry
from tests.chaos.stage import Stage
from tests.chaos.web import HTTP, ArcReader, Poster

DATABASE = "messages.sqlite"
ARC_READER = "arc-reader"
HEARTBEAT_MS = 500
_STORM_S = 30.0
_TOLD = re.compile(r"(?:are|is) missing|is damaged|was cut, damaged or replaced")
_FAILURE_S = 5.0  # until something happens that agents under load cause many times a second
_MEBIBYTE = 1024 * 1024


class Ended(Exception):
    """The daemon does not start on what is left, and says so: nothing more can be asked of it."""


# --- the process ------------------------------------------------------------------------------------------------------------


_MOMENTS: dict[str, Callable[[Entry], bool]] = {
    "a message passes over one that has expired": lambda entry: entry.kind == "arrived" and entry.what["prev_seq"] is not None,
    "a sender hears of a delivery": lambda entry: entry.kind == "outcome" and entry.what["told"] == "delivered",
    "a sender hears of a death": lambda entry: entry.kind == "outcome" and entry.what["told"] == "DELIVERY_TIMEOUT",
    "a sender hears that it is stored": lambda entry: entry.kind == "stored",
    "an agent has come back": lambda entry: entry.kind == "welcomed",
}


async def kill(stage: Stage) -> None:
    """At any moment; or in the very moment in which somebody was told something that must be true from then on."""
    await stage.let_it_run(0.1, 1.5)
    if stage.random.random() < 0.6:
        await _kill_when(stage, _MOMENTS[stage.random.choice(list(_MOMENTS))])
    await _go_on(stage)


async def _go_on(stage: Stage) -> None:
    stage.history.fault("kill")
    await stage.kill_daemon()
    if stage.machine is not None:
        stage.machine.slow_down_disk(0)
    await stage.start_daemon()
    stage.history.fault("kill", ends=True)


async def _kill_when(stage: Stage, moment: Callable[[Entry], bool]) -> None:
    pid = stage.daemon.pid

    def strike(entry: Entry) -> bool:
        if moment(entry):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    stage.history.trigger = strike
    await stage.wait(lambda: stage.history.trigger is None, _FAILURE_S)
    stage.history.trigger = None


async def storm(stage: Stage) -> None:
    """Everybody comes back at once."""
    await stage.let_it_run(2.0, 3.0)
    await _go_on(stage)
    await stage.wait(lambda: all(agent.connected for agent in stage.agents), _STORM_S)


async def stop(stage: Stage) -> None:
    """SIGTERM, and SIGKILL while it is stopping."""
    await stage.let_it_run(0.1, 1.5)
    stage.history.fault("stop")
    os.kill(stage.daemon.pid, signal.SIGTERM)
    await stage.wait(lambda: not stage.daemon.running, stage.random.choice((0.0, 0.02, 0.1, 0.5, 6.0)))
    await stage.kill_daemon()
    await stage.start_daemon()
    stage.history.fault("stop", ends=True)


async def suspend(stage: Stage) -> None:
    """SIGSTOP for longer than two heartbeats, while the agents go on writing."""
    await stage.let_it_run(0.5, 1.0)
    stage.history.fault("suspend")
    os.kill(stage.daemon.pid, signal.SIGSTOP)
    for agent in stage.agents:
        agent.is_suspended = True
    try:
        await stage.let_it_run(2.5 * HEARTBEAT_MS / 1000, 6 * HEARTBEAT_MS / 1000)
    finally:
        for agent in stage.agents:
            agent.is_suspended = False
        stage.history.fault("suspend", ends=True)
        os.kill(stage.daemon.pid, signal.SIGCONT)
    await stage.let_it_run(2.0, 2.5)


# --- the disk ---------------------------------------------------------------------------------------------------------------


async def fill_disk(stage: Stage) -> None:
    """No byte is left on the disk of the state directory for a while; sometimes the daemon is killed meanwhile."""
    await stage.let_it_run(0.3, 1.0)
    stage.history.fault("full")
    filler = stage.daemon.directory / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(b"x" * _MEBIBYTE) == _MEBIBYTE:
                pass
            while file.write(b"x" * 512):
                pass
    except OSError:
        pass  # it is full
    await stage.let_it_run(0.3, 2.0)
    killed = stage.random.random() < 0.5
    if killed:
        await stage.kill_daemon()
    filler.unlink()
    if killed:
        await stage.start_daemon()
    stage.history.fault("full", ends=True)


async def fail_fsync(stage: Stage) -> None:
    """fdatasync of the database's files fails: once, a few times, for some seconds, or until the daemon is killed, which is
    right after the first failure as often as not. In some cycles a reader has the database open."""
    assert stage.disk is not None
    await stage.let_it_run(0.2, 1.0)
    if stage.random.random() < 0.2:
        await stage.read_history()
    stage.history.fault("fsync")
    many, seconds = stage.random.choice((("1", 0.3), ("3", 0.5), ("*", 0.0), ("*", 0.0), ("*", 1.0), ("*", 3.0)))
    disk, before = stage.disk, len(stage.disk.log)
    stage.disk.set(*(f"{call} EIO {DATABASE} {many} {stage.random.randrange(4)}" for call in ("fdatasync", "fsync")))
    await stage.wait(lambda: len(disk.log) > before, _FAILURE_S)
    await stage.let_it_run(seconds / 2, seconds + 0.1)
    await _end_disk_fault(stage, "fsync")


async def fail_write(stage: Stage) -> None:
    """Writing the database's files fails with EIO or ENOSPC, or stops halfway."""
    assert stage.disk is not None
    await stage.let_it_run(0.2, 1.0)
    stage.history.fault("write")
    what, many = stage.random.choice(("EIO", "ENOSPC", "HALF")), stage.random.choice(("1", "1", "5", "*"))
    calls = ("pwrite", "write", "ftruncate")
    stage.disk.set(*(f"{call} {what} {DATABASE} {many} {stage.random.randrange(6)}" for call in calls))
    await stage.let_it_run(0.2, 1.5)
    await _end_disk_fault(stage, "write")


async def _end_disk_fault(stage: Stage, name: str) -> None:
    assert stage.disk is not None
    killed = stage.random.random() < 0.5
    if killed:
        await stage.kill_daemon()
    stage.disk.clear()
    if not killed:
        await stage.let_it_run(0.1, 1.0)
        killed = stage.random.random() < 0.5  # after it had time to go on
        if killed:
            await stage.kill_daemon()
    if killed:
        await stage.start_daemon()
    stage.history.fault(name, ends=True)


async def slow_down(stage: Stage) -> None:
    """The disk takes long to flush, so that whatever is told too early is told long before it is true. Then the daemon dies,
    and the next one has a fast disk: it hears what its agents claim before it gets to anything else."""
    assert stage.machine is not None
    await stage.let_it_run(0.3, 0.6)
    stage.machine.slow_down_disk(stage.random.uniform(0.1, 0.3))
    await kill(stage)


# --- files that somebody touches --------------------------------------------------------------------------------------------


async def delete_files(stage: Stage) -> None:
    """Under the running daemon the database goes, or a part of it. What was sent before is gone; nothing sent after may be."""
    await stage.let_it_run(0.5, 1.0)
    stage.history.fault("delete")
    endings = stage.random.choice((("",), ("-wal",), ("", "-wal", "-shm"), ("-wal", "-shm")))
    is_moved = stage.random.random() < 0.3
    for ending in endings:
        path = stage.daemon.state_dir / f"{DATABASE}{ending}"
        if is_moved and path.exists():
            path.rename(path.with_suffix(".moved"))
        else:
            path.unlink(missing_ok=True)
    stage.forget_the_past(f"deleted {endings}")
    await stage.let_it_run(0.8, 1.5)
    await stage.kill_daemon()
    await _start_on_what_is_left(stage)
    stage.history.fault("delete", ends=True)


async def damage_files(stage: Stage) -> None:
    """While the daemon is down the database or its WAL is cut, or bytes in it change."""
    await stage.let_it_run(0.8, 1.5)
    stage.history.fault("damage")
    await stage.kill_daemon()
    told_before = _words_of(stage)
    wounded = _wound(stage)
    await _start_on_what_is_left(stage)
    if _TOLD.search(_words_of(stage)[len(told_before) :]):
        stage.forget_the_past(f"damaged {wounded}, and it said so")
    stage.history.fault("damage", ends=True)


async def damage_events(stage: Stage) -> None:
    """While the daemon is down bytes in the log of events change. No message is lost by that, and the gap is told."""
    await stage.let_it_run(0.8, 1.5)
    stage.history.fault("events")
    await stage.kill_daemon()
    _hurt(stage, stage.daemon.state_dir / "events.jsonl", stage.random.choice(("garble", "zero")))
    await stage.start_daemon()
    stage.history.fault("events", ends=True)


def _wound(stage: Stage) -> str:
    choices = [path for ending in ("", "-wal") if (path := stage.daemon.state_dir / f"{DATABASE}{ending}").exists()]
    path = stage.random.choice([each for each in choices if each.stat().st_size] or choices)
    how = stage.random.choice(("cut", "garble", "zero"))
    _hurt(stage, path, how)
    return f"{path.name} ({how})"


def _hurt(stage: Stage, path: Path, how: str) -> None:
    size = path.stat().st_size
    if how == "cut":
        os.truncate(path, int(size * stage.random.uniform(0.1, 0.9)))
    else:
        with path.open("r+b") as file:
            file.seek(int(size * stage.random.uniform(0.1, 0.8)))
            file.write(stage.random.randbytes(4096) if how == "garble" else bytes(4096))


def _words_of(stage: Stage) -> str:
    log = stage.daemon.state_dir / "daemon.log"
    return stage.daemon.output + (log.read_text(errors="replace") if log.exists() else "")


async def _start_on_what_is_left(stage: Stage) -> None:
    try:
        await stage.start_daemon()
    except DaemonFailed as failure:
        if DATABASE not in str(failure):
            raise
        raise Ended(str(failure)) from failure


async def start_twin(stage: Stage) -> None:
    """A second daemon on the same database: from another state directory, or from the same one after its lock was removed."""
    await stage.let_it_run(0.3, 0.5)
    if stage.random.random() < 0.5:
        twin = DaemonProcess(f"--storage-path={stage.daemon.state_dir / DATABASE}")
        how = "with another state directory and the same --storage-path"
    else:
        twin = DaemonProcess(directory=stage.daemon.directory)
        twin.socket = str(stage.daemon.directory / "twin.sock")
        how = "after its lock file was removed"
        for path in stage.daemon.state_dir.glob("*.lock"):
            path.unlink()
    try:
        await asyncio.to_thread(twin.start)
        stage.history.started_twice(how)
    except DaemonFailed:
        pass  # as it should
    finally:
        if twin.directory == stage.daemon.directory:
            await asyncio.to_thread(twin.kill)
        else:
            await asyncio.to_thread(twin.remove)


# --- time -------------------------------------------------------------------------------------------------------------------


async def jump_clock(stage: Stage) -> None:
    """The wall clock jumps by up to two hours, either way; sometimes the daemon is killed before or after it."""
    assert stage.machine is not None
    await stage.let_it_run(0.2, 1.0)
    stage.history.fault("clock")
    if stage.random.random() < 0.3:
        await stage.kill_daemon()
        stage.machine.set_clock(stage.random.uniform(-7_200, 7_200))
        await stage.start_daemon()
    else:
        stage.machine.set_clock(stage.random.uniform(-7_200, 7_200))
        await stage.let_it_run(0.1, 0.5)
        if stage.random.random() < 0.5:
            await stage.kill_daemon()
            await stage.start_daemon()
    stage.history.fault("clock", ends=True)


# --- other ways in ----------------------------------------------------------------------------------------------------------


async def add_posters(stage: Stage) -> None:
    counter = [0]
    for agent in stage.agents[:4]:
        stage.add(Poster(stage.daemon, stage.history, agent.name, stage.seed, counter))


async def kill_while_posting(stage: Stage) -> None:
    """When a message over HTTP has arrived, and the answer to its POST perhaps not."""
    await stage.let_it_run(0.1, 1.0)
    await _kill_when(stage, lambda entry: entry.kind == "arrived" and entry.what["sender"] == HTTP)
    await _go_on(stage)


async def add_arc_reader(stage: Stage) -> None:
    reader = ArcReader(stage.daemon, stage.history, ARC_READER, stage.seed)
    await reader.register()
    stage.add(reader)
    for agent in stage.agents:
        agent.everybody = [*agent.everybody, *[ARC_READER] * len(agent.everybody)]  # half of all messages are for it


async def let_arc_die(stage: Stage) -> None:
    """The reader's connections die by themselves; now and then the daemon does."""
    await stage.let_it_run(1.5, 2.5)
    if stage.random.random() < 0.5:
        await kill(stage)


# --- the table --------------------------------------------------------------------------------------------------------------

_TALKERS = tuple(f"A{number}" for number in range(8))
_CROWD = tuple(f"C{number:03}" for number in range(500))
_LIVELY = Habits()
_FLAGS = ("--queue-capacity=100000", "--ack-timeout-ms=400", "--heartbeat-ms=2000")


@dataclass(frozen=True)
class Family:
    fault: Callable[[Stage], Awaitable[None]]
    names: tuple[str, ...] = _TALKERS
    habits: Habits = _LIVELY
    flags: tuple[str, ...] = _FLAGS
    cycles: int = 8  # at most so many on one daemon
    needs_disk: bool = False  # the shim that lets calls fail
    needs_machine: bool = False  # the shim that moves the wall clock and slows the disk down
    needs_database: bool = False  # a PostgreSQL server of its own
    prepare: Callable[[Stage], Awaitable[None]] | None = None  # adds further clients
    small_disk_bytes: int = 0  # the state directory is on a disk of its own

    def why_not(self) -> str | None:
        """Why it cannot be done here."""
        if self.small_disk_bytes and os.geteuid() != 0:
            return "a small disk of its own (tmpfs) can be mounted by root alone"
        return None


_FORWARD = Habits(forgets=0.0)  # nobody asks for what was, so that no reader has the database open unless a fault opens one
# Messages wait about as long as they live, so that some expire just before the next one is sent.
_ONE_BY_ONE = Habits(
    rate=5.0,
    groups=0.1,
    short_lived=0.5,
    longest_life_ms=700,
    window=1,
    is_slow=0.9,
    ignores=0.02,
    leaves=0.05,
    fresh=0.0,
    resumes=0.9,
)
_STEADY = Habits(leaves=0.0, fresh=0.0, short_lived=0.1)

FAMILIES: dict[str, Family] = {
    "kill": Family(kill),
    "stop": Family(stop),
    "suspend": Family(
        suspend, habits=Habits(leaves=0.05, short_lived=0.1), flags=(*_FLAGS[:-1], f"--heartbeat-ms={HEARTBEAT_MS}"), cycles=3
    ),
    "full": Family(fill_disk, small_disk_bytes=24 * _MEBIBYTE, cycles=4),
    "fsync": Family(fail_fsync, habits=_FORWARD, needs_disk=True),
    "slow": Family(slow_down, habits=_ONE_BY_ONE, needs_machine=True),
    "write": Family(fail_write, needs_disk=True),
    "delete": Family(delete_files, habits=_STEADY, cycles=1),
    "damage": Family(damage_files, habits=_STEADY, cycles=1),
    "events": Family(damage_events, habits=_STEADY, cycles=2),
    "twin": Family(start_twin, habits=_STEADY, cycles=2),
    "clock": Family(jump_clock, needs_machine=True),
    "http": Family(kill_while_posting, habits=replace(_STEADY, groups=0.0), flags=(*_FLAGS, "--port=0"), prepare=add_posters),
    "arc": Family(let_arc_die, habits=_STEADY, flags=(*_FLAGS, "--port=0"), prepare=add_arc_reader, cycles=4),
    "postgres": Family(hurt_database, flags=(*_FLAGS, "--storage=postgres"), cycles=6, needs_database=True),
    "storm": Family(
        storm,
        names=_CROWD,
        habits=Habits(rate=0.4, groups=0.002, leaves=0.02, longest_retry_s=0.4, window=32),
        flags=(*_FLAGS[:-2], "--ack-timeout-ms=3000", "--heartbeat-ms=10000"),
        cycles=2,
    ),
}
