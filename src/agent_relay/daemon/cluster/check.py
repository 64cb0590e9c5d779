"""A look at the engine of a cluster, for `doctor`: can each server be reached, and does it keep the log as it should?"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from agent_relay.cluster.jetstream import Answer, Names, stream_settings
from agent_relay.daemon.cluster.client import ClusterClient, ClusterUnreachable, connect_cluster
from agent_relay.daemon.config import ClusterConfig

_SERVER_S = 4.0
_OLDEST = (2, 10)  # of nats-server: a log that begins at a chosen record
_PAYLOAD_BYTES = 8 * 1024 * 1024
_HELD = ("storage", "retention", "discard", "num_replicas", "max_age", "max_msgs", "allow_direct", "deny_delete", "deny_purge")


class EngineFinding(Struct, frozen=True):
    """`is_good`: None where it cannot be seen. `is_serious`: the cluster does not work with it, or may lose something."""

    text: str
    is_good: bool | None = True
    is_serious: bool = False
    mend: str = ""


class _Config(Struct, frozen=True):
    sync_always: bool = False


class _JetStream(Struct, frozen=True):
    config: _Config


class _Varz(Struct, frozen=True):
    jetstream: _JetStream


class _Server(Struct, frozen=True):
    name: str


class _ServerPage(Struct, frozen=True):
    """The little that is looked at in a server's description of itself."""

    server: _Server
    data: _Varz


async def check_engine(config: ClusterConfig) -> AsyncIterator[EngineFinding]:
    reached = False
    for server in config.servers:
        try:
            async with connect_cluster(config, server, _SERVER_S) as client:
                reached = True
                yield _judge_server(server, client)
        except ClusterUnreachable as error:
            yield EngineFinding(f"{server} cannot be reached: {error}", is_good=False, is_serious=True, mend=_advise(str(error)))
    if not reached:
        return
    try:
        async with connect_cluster(config) as client:
            log = await client.find_log()
            for finding in _check_log(config, client.names.stream, log):
                yield finding
            yield await _check_flushing(client, _list_keepers(log))
    except ClusterUnreachable as error:
        yield EngineFinding(str(error), is_good=False, is_serious=True, mend="start the NATS servers, or enable JetStream there")


def _advise(error: str) -> str:
    if "uthorization" in error:
        return "set AGENT_RELAY_CLUSTER_TOKEN, or name a credentials file with --cluster-creds"
    return "start that server, or leave it out of --cluster"


def _judge_server(server: str, client: ClusterClient) -> EngineFinding:
    version = client.wire.version
    numbers = tuple(int(word) for word in re.findall(r"\d+", version)[:2])
    text = f"{server} answers, nats-server {version}"
    if numbers < _OLDEST:
        wanted = ".".join(map(str, _OLDEST))
        return EngineFinding(f"{text}; {wanted} or later is needed", is_good=False, is_serious=True, mend="update nats-server")
    if client.max_payload_bytes < _PAYLOAD_BYTES:
        size = f"max_payload is {client.max_payload_bytes >> 10:,} KiB, so larger messages are refused"
        return EngineFinding(f"{text}; {size}", is_good=False, mend="set max_payload: 8MB in its configuration and reload it")
    return EngineFinding(text)


# --- the log ------------------------------------------------------------------------------------------------------------


def _check_log(config: ClusterConfig, name: str, log: Answer | None) -> Iterator[EngineFinding]:
    if log is None:
        yield EngineFinding(f"there is no log {name} yet; the first daemon makes it")
        return
    wanted = stream_settings(Names(config.project), config.replicas)
    wrong = [f"{key} is {log.config.get(key)!r}, not {wanted[key]!r}" for key in _HELD if log.config.get(key) != wanted[key]]
    if wrong:
        yield EngineFinding(
            f"the log {name} has other settings than it should: {'; '.join(wrong)}", is_good=False,
            is_serious=any(word.startswith(("storage", "retention", "discard")) for word in wrong),
            mend=f"change them with `nats stream edit {name}`, or start the daemons with --cluster-replicas as it is",
        )  # fmt: skip
    else:
        last = log.state.last_seq if log.state is not None else 0
        yield EngineFinding(f"the log {name} has its settings; it ends at record {last:,}")
    yield _judge_quorum(config, log)


def _list_keepers(log: Answer | None) -> list[str]:
    """The names of the servers that keep the log."""
    cluster = (log.cluster if log is not None else None) or {}
    found = [cluster.get("leader"), *(peer.get("name") for peer in cluster.get("replicas") or [])]
    return [str(name) for name in found if name]


def _judge_quorum(config: ClusterConfig, log: Answer) -> EngineFinding:
    if config.replicas == 1:
        return EngineFinding(
            "one server keeps each record: if its disk is lost, so is what was confirmed", is_good=False,
            mend="run three servers, and start the daemons with --cluster-replicas 3",
        )  # fmt: skip
    cluster = log.cluster or {}
    followers: list[dict[str, Any]] = cluster.get("replicas") or []
    good = [peer for peer in followers if peer.get("current") and not peer.get("offline")]
    bad = ", ".join(str(peer.get("name")) for peer in followers if peer not in good)
    if not cluster.get("leader"):
        return EngineFinding("the log has no leader: no majority", is_good=False, is_serious=True, mend="start the NATS servers")
    text = f"{cluster['leader']} leads the log, {len(good)} of {len(followers)} followers have all of it"
    if bad:
        return EngineFinding(f"{text}; not {bad}", is_good=False, mend="start that server, or wait until it has caught up")
    return EngineFinding(text)


async def _check_flushing(client: ClusterClient, servers: list[str]) -> EngineFinding:
    """Of the servers that keep the log. Only the system account may ask, or whoever imports that from it."""
    unseen, careless = list[str](), list[str]()
    for server in servers:
        flushing = await _ask_flushing(client, server)
        if not flushing:
            (unseen if flushing is None else careless).append(server)
    if careless:
        return EngineFinding(
            f"{', '.join(careless)} does not flush every record: a power cut can take back what was confirmed", is_good=False,
            is_serious=True, mend="set `sync_interval: always` in its jetstream block and restart it",
        )  # fmt: skip
    if unseen or not servers:
        return EngineFinding(
            "whether the servers flush every record cannot be seen with these credentials", is_good=None,
            mend="check that each has `sync_interval: always`, or let doctor ask: docs/cluster.md, Accounts and keys",
        )  # fmt: skip
    return EngineFinding(f"{', '.join(servers)} {'flush' if len(servers) > 1 else 'flushes'} every record")


async def _ask_flushing(client: ClusterClient, server: str) -> bool | None:
    """None: it does not say."""
    asked = msgspec.json.encode({"server_name": server, "exact_match": True})
    message = await client.ask("$SYS.REQ.SERVER.PING.VARZ", asked)
    if message is None or message.status:
        return None
    try:
        page = msgspec.json.decode(message.payload, type=_ServerPage)
    except msgspec.MsgspecError:
        return None
    return page.data.jetstream.config.sync_always if page.server.name == server else None
