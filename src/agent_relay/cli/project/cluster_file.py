"""`cluster.json`, in which the daemon keeps the hosts of its cluster: read without asking it, so also while it is cut off."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import msgspec

from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Part
from agent_relay.protocol.hosts import ClusterFacts, HostRole
from agent_relay.protocol.places import CLUSTER_FILE

_SEAT_S = 15.0  # the first host listens some seconds for others before it takes the seat
_TROUBLE_S = 5.0  # at first no host is connected
_POLL_S = 0.05


def read_cluster(state_dir: str) -> ClusterFacts | None:
    """None: the daemon is not in a cluster, or has not said yet."""
    try:
        with open(os.path.join(state_dir, CLUSTER_FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=ClusterFacts)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def wait_for_seat(state_dir: str) -> ClusterFacts | None:
    """The cluster once a host has the seat, or it is known why none has; as it is after some seconds. None: there is none."""
    begun = time.monotonic()
    while True:
        found = read_cluster(state_dir)
        if found is None or found.seat or time.monotonic() - begun >= (_TROUBLE_S if found.trouble else _SEAT_S):
            return found
        time.sleep(_POLL_S)


def describe_cluster(cluster: ClusterFacts) -> Iterator[tuple[Part, ...]]:
    """Lines for a person: the hosts and who has the seat, and what is wrong, if anything is."""
    lost = ", ".join(clean_line(host.host) for host in cluster.hosts if host.role is HostRole.LOST)
    seat = "this host" if cluster.seat == cluster.host else clean_line(cluster.seat) or "nobody"
    known = {cluster.host, *(host.host for host in cluster.hosts), *filter(None, [cluster.seat])}
    about = f"{clean_line(cluster.host)}, one of {count(len(known), 'host')}; {seat} has the seat"
    yield about, (f"; lost: {lost}" if lost else "", "red")
    if cluster.trouble:
        yield ((f"WARNING: {clean_line(cluster.trouble)}", "yellow"),)
