"""The defaults are the numbers of the wire contract."""

from __future__ import annotations

import dataclasses

import pytest

from agent_relay.core.limits import Limits

CONTRACT = {
    "max_frame_bytes": 1_048_576,
    "heartbeat_ms": 5_000,
    "handshake_timeout_ms": 10_000,
    "ack_timeout_ms": 5_000,
    "max_attempts": 5,
    "queue_capacity": 1_000,
    "max_inflight": 256,
    "slow_consumer_ms": 30_000,
    "resume_ttl_ms": 86_400_000,
    "message_ttl_ms": 86_400_000,
    "dedup_window_ms": 86_400_000,
    "dedup_ids": 100_000,
    "rate_limit": 0,
    "bad_frames": 20,
}


@pytest.mark.parametrize(("name", "value"), CONTRACT.items())
def test_the_default_is_the_number_of_the_contract(name: str, value: int) -> None:
    assert getattr(Limits(), name) == value


def test_an_acknowledgement_is_written_in_time_to_be_durable_within_200_ms() -> None:
    assert Limits().cursor_flush_ms < 200


def test_limits_cannot_change_under_a_running_relay() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits().queue_capacity = 1  # type: ignore[misc]
