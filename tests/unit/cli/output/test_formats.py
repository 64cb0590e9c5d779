"""Numbers as people read them."""

from __future__ import annotations

import pytest

from agent_relay.cli.output.formats import count, format_bytes, format_span, format_time


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (0, "0 ms"), (999, "999 ms"), (1_000, "1 s"), (2_440, "2.4 s"), (10_000, "10 s"), (59_999, "59 s"), (60_000, "1 min"),
        (200_000, "3 min 20 s"), (3_600_000, "1 h"), (7_500_000, "2 h 5 min"), (86_400_000, "1 d"), (273_600_000, "3 d 4 h"),
    ],
)  # fmt: skip
def test_spans(span_ms: int, text: str) -> None:
    assert format_span(span_ms) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (2**31, "2.0 GiB"), (2**41, "2.0 TiB")],
)
def test_sizes(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_counts() -> None:
    assert [count(0, "message"), count(1, "message"), count(2_000, "message")] == ["0 messages", "1 message", "2,000 messages"]


def test_another_day_is_told() -> None:
    day_ms = 86_400_000
    now = 1_700_000_000_123
    assert len(format_time(now, now)) == len("10:42:07")
    assert format_time(now, now, exact=True).endswith(".123")
    assert format_time(now - 3 * day_ms, now).startswith("2023-11-1")


def test_a_time_out_of_any_range_is_no_failure() -> None:
    assert format_time(2**60, 0) == str(2**60)
