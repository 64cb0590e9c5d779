"""The hosts of a cluster, as every command and page shows them. A daemon writes them to `cluster.json` in its state directory,
so that they can be seen also while nobody answers."""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct, field

LOG_DAYS = 30  # for so long the log that hosts share keeps a record
_HOST = re.compile(r"[a-z0-9-]{1,32}")


class HostRole(StrEnum):
    SEAT = "seat"
    EDGE = "edge"
    LOST = "lost"  # not heard for a while


class HostFacts(Struct, frozen=True):
    host: str
    role: HostRole
    version: str = ""
    agents: int = 0  # connected there, as the seat says
    load: float = 0.0  # 1: as much to do as the machine has cores
    position: int = 0  # of its copy in the log
    behind: int = 0  # records that its copy does not have yet
    clock_ms: int = 0  # its clock is ahead of ours by so much
    heard_at: int = 0  # by our clock
    starts: list[str] = field(default_factory=list)  # the CLIs that it has
    is_self: bool = False
    is_excluded: bool = False  # it takes no part


class ClusterFacts(Struct, frozen=True):
    """As one host sees it. `trouble`: why it serves nobody now, and what to do; "" for none."""

    project: str
    host: str
    seat: str = ""  # "": nobody that we know of
    trouble: str = ""
    hosts: list[HostFacts] = field(default_factory=list)


def is_host_name(text: str) -> bool:
    """Host names are parts of subjects."""
    return _HOST.fullmatch(text) is not None
