"""Hosts of a cluster, as files and pages have them."""

from __future__ import annotations

import msgspec
import pytest

from agent_relay.protocol.hosts import ClusterFacts, HostFacts, HostRole, is_host_name


@pytest.mark.parametrize("name", ["a", "build-1", "x" * 32, "-"])
def test_names_of_hosts(name: str) -> None:
    assert is_host_name(name)


@pytest.mark.parametrize("name", ["", "A", "a.b", "a b", "*", ">", "x" * 33, "é", "a\n"])
def test_what_cannot_be_part_of_a_subject_is_no_name(name: str) -> None:
    assert not is_host_name(name)


def test_facts_are_read_as_they_were_written_and_by_other_versions() -> None:
    facts = ClusterFacts("demo", "a", "b", "", [HostFacts("a", HostRole.EDGE, starts=["claude"], is_self=True)])
    assert msgspec.json.decode(msgspec.json.encode(facts), type=ClusterFacts) == facts
    newer = b'{"project": "demo", "host": "a", "moon": "full", "hosts": [{"host": "a", "role": "seat", "mood": 1}]}'
    assert msgspec.json.decode(newer, type=ClusterFacts).hosts == [HostFacts("a", HostRole.SEAT)]
