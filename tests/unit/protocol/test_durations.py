from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.durations import format_duration, parse_duration_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        ("250ms", 250),
        ("250", 250),
        ("0", 0),
        (" 5 s ", 5_000),
    ],
)
def test_spellings(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "s", "-5s", "5S", "1.5s", "5s5m", "5 weeks", "٣s", "1" * 17, "5sx", "+5", "1_000", "1e3"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration_ms(text)


@given(st.integers(0, 2**53 - 1))
def test_round_trip(milliseconds: int) -> None:
    assert parse_duration_ms(format_duration(milliseconds)) == milliseconds


@given(st.integers(1, 10_000), st.sampled_from([(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")]))
def test_the_largest_unit_that_fits(count: int, unit: tuple[int, str]) -> None:
    text = format_duration(count * unit[0])
    assert text[-1] in "dhms"
    assert len(text) <= len(f"{count}{unit[1]}")


@pytest.mark.parametrize(
    ("milliseconds", "text"), [(0, "0"), (1, "1"), (999, "999"), (1_000, "1s"), (90_000, "90s"), (86_400_000, "1d")]
)
def test_formatting(milliseconds: int, text: str) -> None:
    assert format_duration(milliseconds) == text
