"""Mending a log that has lost confirmed records, from those that this host has kept: `agent-relay cluster repair`.

Nothing is guessed. The log's last record must be, byte by byte, one that was kept; then those behind it are appended in their
order, each in its own place. Where that cannot be, nothing is changed and the reason is told.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_relay.cluster.continuity import read_data
from agent_relay.cluster.hosts import HostWord
from agent_relay.cluster.jetstream import stream_settings
from agent_relay.cluster.log import JetStreamLog
from agent_relay.cluster.seat import Ahead
from agent_relay.daemon.cluster.client import ClusterClient, connect_cluster
from agent_relay.daemon.cluster.identity import host_name
from agent_relay.daemon.config import Config
from agent_relay.daemon.logs import RelayLog
from agent_relay.ports.cluster import Appended, NotNext, WireMessage
from agent_relay.protocol import places
from agent_relay.storage.kept_records import read_records
from agent_relay.storage.sqlite.transfer import read_position

_LISTEN_S = 2.5  # every host speaks every two seconds
_TICK_S = 0.05
_AHEAD_S = 0.5


class RepairPlan(Struct, frozen=True):
    """`missing` records are to be appended, or were. `refusal`: why nothing can be done, and what can be instead."""

    log_last: int = 0
    kept_first: int = 0
    kept_last: int = 0
    missing: int = 0
    missing_bytes: int = 0
    creates: bool = False  # the log is gone, and is made again where the kept records begin
    refusal: str = ""
    is_done: bool = False


class _Refused(Exception):  # noqa: N818 - named by the condition
    pass


async def repair_log(config: Config, *, is_dry: bool, progress: Callable[[int, int], None]) -> RepairPlan:
    """Raises ClusterUnreachable. A dry run changes nothing."""
    kept = dict(read_records(Path(config.file(places.CLUSTER_RECORDS_FOLDER))))
    position = read_position(Path(config.storage_path))
    if kept and max(kept) < position:  # a power cut has taken the last ones: what is left does not reach to the database
        kept.clear()
    async with connect_cluster(config.cluster) as client:
        plan = await _plan(config, client, kept, position)
        if is_dry or plan.refusal or not (plan.missing or plan.creates):
            return plan
        return await _carry_out(config, client, kept, plan, progress)


# --- looking ------------------------------------------------------------------------------------------------------------


async def _plan(config: Config, client: ClusterClient, kept: dict[int, bytes], position: int) -> RepairPlan:
    """Without records, a log that is gone can still begin behind the database: whoever has less takes a copy of it."""
    first, last = (min(kept), max(kept)) if kept else (position + 1, position)
    log = await client.find_log()
    log_last = log.state.last_seq if log is not None and log.state is not None else 0
    plan = RepairPlan(log_last, first, last)
    try:
        if not last:
            raise _Refused("This host has copied nothing of the log yet. Run the command at a host that has.")
        missing = [sequence for sequence in kept if sequence > log_last]
        if kept and log_last >= last:  # first of all: whether this host's records are the log's at all
            await _check_same(config, client, kept, last)
        await _check_others(config, client, max(last, log_last), is_needed=log_last < last)
        if 0 < log_last < last:
            await _check_same(config, client, kept, log_last)
    except _Refused as refusal:
        return msgspec.structs.replace(plan, refusal=str(refusal))
    size = sum(len(kept[sequence]) for sequence in missing)
    return msgspec.structs.replace(plan, missing=len(missing), missing_bytes=size, creates=not log_last)


async def _check_others(config: Config, client: ClusterClient, last: int, *, is_needed: bool) -> None:
    """Somebody may have more, or the seat."""
    words: dict[str, HostWord] = {}

    def heard(message: WireMessage) -> None:
        with suppress(msgspec.MsgspecError):
            word = msgspec.json.decode(message.payload, type=HostWord)
            words[word.host] = word

    subscription = client.wire.subscribe(client.names.hosts, heard)
    await asyncio.sleep(_LISTEN_S)
    client.wire.unsubscribe(subscription)
    own = config.cluster.host or host_name()
    if is_needed and (seat := next((word.host for word in words.values() if word.is_seat), "")):
        raise _Refused(
            f"Host {seat} has the seat: the log goes on without the records that only this host has. {_set_aside(config)}"
        )
    if (most := max(words.values(), key=lambda word: word.position, default=None)) and most.position > last:
        where = "here" if most.host == own else f"on host {most.host}"
        raise _Refused(
            f"The database {where} reaches to record {most.position:,}, and the log and this host's records end at {last:,}. Run "
            "the command at a host that has kept them all."
        )


async def _check_same(config: Config, client: ClusterClient, kept: dict[int, bytes], sequence: int) -> None:
    if sequence not in kept:
        raise _Refused(
            f"The log ends at record {sequence:,}, and this host has kept "
            f"{f'records from {min(kept):,} on' if kept else 'no records'}: those in between, or the one to compare, are missing."
            " Run the command at a host that has kept more, or restore a newer backup of NATS. If there is neither, remove the "
            f"log (nats stream rm {client.names.stream}) and run this again: it is made anew, and hosts that have less take a "
            "copy of this host's database."
        )
    request = msgspec.json.encode({"seq": sequence})
    answer = await client.ask_api(f"STREAM.MSG.GET.{client.names.stream}", request)
    if answer.message is None:
        raise _Refused(f"Record {sequence:,} of the log cannot be read, so nothing can be compared. Try again.")
    if read_data(answer.message) != kept[sequence]:
        raise _Refused(f"Record {sequence:,} of the log is not the one that this host has copied. {_set_aside(config)}")


def _set_aside(config: Config) -> str:
    return (
        f"To join the others again, stop the daemon, move {config.storage_path} and {config.file(places.CLUSTER_RECORDS_FOLDER)} "
        "away, and start it: it takes a copy of the seat's database. The moved file still has what the others lost."
    )


# --- doing --------------------------------------------------------------------------------------------------------------


async def _carry_out(
    config: Config, client: ClusterClient, kept: dict[int, bytes], plan: RepairPlan, progress: Callable[[int, int], None]
) -> RepairPlan:
    log = JetStreamLog(client.wire, client.names, f"repair-{secrets.token_hex(6)}", config.cluster.replicas, RelayLog(), 0)
    beating = asyncio.create_task(_beat(client, log, Ahead(config.cluster.host or host_name(), plan.kept_last)))
    try:
        after = plan.log_last
        if plan.creates:
            await _make_log(config, client, plan)
            after = plan.kept_first - 1
        for count, sequence in enumerate(range(after + 1, plan.kept_last + 1), 1):
            outcome = await _append(log, kept[sequence], sequence - 1)
            if not isinstance(outcome, Appended):
                refusal = f"Somebody else appended to the log at record {sequence:,} meanwhile. {_set_aside(config)}"
                return msgspec.structs.replace(plan, refusal=refusal, missing=plan.kept_last - sequence + 1)
            progress(count, plan.missing)
    finally:
        beating.cancel()
    return msgspec.structs.replace(plan, is_done=True)


async def _beat(client: ClusterClient, log: JetStreamLog, ahead: Ahead) -> None:
    """Keeps the log's clock, and the other hosts from claiming a seat in the middle of it."""
    loop = asyncio.get_running_loop()
    said_at = 0.0
    while True:
        log.clock_says(int(loop.time() * 1000))
        if loop.time() - said_at >= _AHEAD_S:
            said_at = loop.time()
            client.wire.publish(client.names.ahead, msgspec.json.encode(ahead))
        await asyncio.sleep(_TICK_S)


async def _append(log: JetStreamLog, record: bytes, after: int) -> Appended | NotNext:
    outcome: asyncio.Future[Appended | NotNext] = asyncio.get_running_loop().create_future()
    log.append(record, after, outcome.set_result)
    return await outcome


async def _make_log(config: Config, client: ClusterClient, plan: RepairPlan) -> None:
    """Anew, beginning with the first record that was kept. One that is there is empty: nothing is lost with it."""
    settings = stream_settings(client.names, config.cluster.replicas) | {"first_seq": plan.kept_first}
    await client.ask_api(f"STREAM.DELETE.{client.names.stream}")
    await client.ask_api(f"STREAM.CREATE.{client.names.stream}", msgspec.json.encode(settings))
    made = await client.find_log()
    if made is None or made.state is None or made.state.last_seq != plan.kept_first - 1:
        raise RuntimeError("the log was not made as it should be")
