"""NATS servers with the small messages of their default configuration: no message of a client may stop the log."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from tests.cluster.hosts import Hosts, run_hosts

PATIENCE_S = 60.0
_PAYLOAD_BYTES = 1024 * 1024
_FRAME_BYTES = 4 * 1024 * 1024


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with run_hosts(2, servers=1, flags=(f"--max-frame-bytes={_FRAME_BYTES}",), max_payload=f"{_PAYLOAD_BYTES}") as found:
        yield found


def test_a_message_that_nats_does_not_take_is_refused_and_the_seat_stays(hosts: Hosts) -> None:
    """It used to be offered to NATS again and again, which took the seat from every host that tried."""

    async def live() -> None:
        async with asyncio.timeout(PATIENCE_S), hosts["a"].connect("Alice") as alice, hosts["b"].connect("Bob") as bob:
            for client, to in ((alice, "Bob"), (bob, "Alice")):
                with pytest.raises(RelayError) as refused:
                    await client.send(to, "x" * (_PAYLOAD_BYTES + 500_000))
                assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE
            await alice.send("Bob", "y" * 900_000)  # what fits passes
            async for message in bob.messages():
                async with message:
                    assert len(message.body) == 900_000
                break

    asyncio.run(live())
    assert len(hosts.seats()) == 1
    limits = [note for note in hosts.notes(hosts.seat) if note["event"] == "frames_limited"]
    assert limits[0]["max_frame_bytes"] == _PAYLOAD_BYTES - 128 * 1024
