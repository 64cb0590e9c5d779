"""The project's cluster, where it has one: its NATS servers, the log, and the other hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.failures import Failure
from agent_relay.cli.output.formats import count, format_span
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.project.cluster_file import read_cluster
from agent_relay.protocol.hosts import ClusterFacts, HostFacts, HostRole
from agent_relay.sdk.locate import Place
from agent_relay.version import __version__

if TYPE_CHECKING:
    from agent_relay.daemon.cluster.check import EngineFinding
    from agent_relay.daemon.config import ClusterConfig

_CLOCK_NOTE_MS = 2_000
_CLOCK_BAD_MS = 60_000  # from here on, expiry and history look wrong wherever the seat moves
_BEHIND = 1_000


def check_cluster(place: Place) -> Iterator[Finding]:
    from agent_relay.cli.project.cluster_settings import read_cluster_settings
    from agent_relay.cli.project.daemon_process import is_held

    try:
        config = read_cluster_settings(place)
    except Failure:  # settings that cannot be read are told elsewhere
        return
    if config is None:
        return
    try:
        findings = asyncio.run(_look(config.cluster))
    except ModuleNotFoundError as error:
        yield Finding("cluster", Verdict.BAD, f"the package {error.name} is missing", "pip install 'agent-relay[cluster]'")
        return
    for found in findings:
        yield _judge(found)
    facts = read_cluster(place.state_dir) if is_held(place.state_dir) else None
    if facts is not None:
        yield from check_hosts(facts)


async def _look(config: ClusterConfig) -> list[EngineFinding]:
    from agent_relay.daemon.cluster.check import check_engine

    return [finding async for finding in check_engine(config)]


def _judge(found: EngineFinding) -> Finding:
    if found.is_good is None:
        verdict = Verdict.ABSENT
    elif found.is_good:
        verdict = Verdict.OK
    else:
        verdict = Verdict.BAD if found.is_serious else Verdict.NOTE
    return Finding("cluster", verdict, clean_line(found.text), found.mend)


def check_hosts(facts: ClusterFacts) -> Iterator[Finding]:
    """The others, as this host's daemon hears them."""
    if facts.trouble:
        yield Finding("hosts", Verdict.BAD, clean_line(facts.trouble))
    elif not facts.seat:
        yield Finding("hosts", Verdict.BAD, "no host has the seat", "wait some seconds; if it stays so, look at the other hosts")
    good = [host for host in facts.hosts if host.role is not HostRole.LOST]
    if facts.seat:
        yield Finding("hosts", Verdict.OK, f"{count(len(good), 'host')}; {clean_line(facts.seat)} has the seat")
    for host in facts.hosts:
        yield from _check_host(host)


def _check_host(host: HostFacts) -> Iterator[Finding]:
    name = clean_line(host.host)
    if host.role is HostRole.LOST:
        yield Finding("hosts", Verdict.NOTE, f"{name} is not heard any more", "start its daemon, or look at its network")
        return
    if host.version != __version__:
        yield Finding(
            "hosts", Verdict.NOTE, f"{name} runs agent-relay {clean_line(host.version)}, this is {__version__}",
            "update one host after the other, the one that has the seat last",
        )  # fmt: skip
    if abs(host.clock_ms) >= _CLOCK_NOTE_MS:
        verdict = Verdict.BAD if abs(host.clock_ms) >= _CLOCK_BAD_MS else Verdict.NOTE
        way = "ahead of" if host.clock_ms > 0 else "behind"
        yield Finding(
            "hosts", verdict, f"{name}'s clock is {format_span(abs(host.clock_ms))} {way} ours", "run NTP on both hosts"
        )
    if host.behind >= _BEHIND:
        yield Finding(
            "hosts", Verdict.NOTE, f"{name}'s copy is {host.behind:,} records behind", "look at that host's disk and load"
        )
