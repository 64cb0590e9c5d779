"""Prices: which entry a name means, one's own before the built-in ones, and no price where there is none."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from agent_relay.events.prices import _CLAUDE, _GEMINI, _OPENAI, PRICES_AS_OF, Price, Prices, names_of, parse_prices

ROWS = [*_CLAUDE, *_OPENAI, *_GEMINI]


def test_the_built_in_list_is_dated_and_sound() -> None:
    assert re.fullmatch(r"\d{4}-\d{2}", PRICES_AS_OF)
    assert len({row[0] for row in ROWS}) == len(ROWS)
    for model, given, answered, read, written in ROWS:
        assert model == model.lower().strip()
        assert 0 < Decimal(given) < Decimal(answered), model
        assert read is None or Decimal(read) < Decimal(given), model
        assert written is None or Decimal(written) > Decimal(given), model


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_model_is_found_by_its_own_name(row: tuple[str, ...]) -> None:
    price = Prices().find(row[0])
    assert price is not None
    assert price.model == row[0]


@pytest.mark.parametrize(
    ("model", "entry"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5"),
        ("anthropic/claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("Claude-Opus-4-6", "claude-opus-4-6"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("openai/gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("gpt-5-mini-latest", "gpt-5-mini"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro"),
        ("models/gemini-2.5-pro-preview-05-06", "gemini-2.5-pro"),
        ("gemini-2.5-flash-lite", "gemini-2.5-flash-lite"),
    ],
)
def test_what_only_says_the_version_is_left_out(model: str, entry: str) -> None:
    price = Prices().find(model)
    assert price is not None
    assert price.model == entry


@pytest.mark.parametrize(
    "model",
    [
        "",
        "unknown",
        "gpt",
        "gpt-9",
        "gpt-5-turbo",
        "claude",
        "claude-opus-4-9",
        "claude-opus",
        "gemini-2.5",
        "my-gpt-5",
        "gpt-5x",
        "<synthetic>",
        "gpt-5-",
    ],
)
def test_a_model_that_is_not_there_has_no_price(model: str) -> None:
    assert Prices().find(model) is None


def test_one_s_own_entries_go_before_the_built_in_ones() -> None:
    own = [
        Price("gpt-5", Decimal(7), Decimal(8)),
        Price("gpt-5", Decimal(1), Decimal(1)),
        Price("house-model", Decimal(0), Decimal(0)),
    ]
    prices = Prices(own)
    for model in ("gpt-5", "gpt-5-2025-08-07", "openai/GPT-5"):
        assert prices.find(model) is own[0]
    assert prices.find("house-model") is own[2]
    assert prices.find("gpt-5-mini") is not None


def test_a_dated_entry_of_one_s_own_is_for_that_date_alone() -> None:
    own = Price("gpt-5-2025-08-07", Decimal(7), Decimal(8))
    assert Prices([own]).find("gpt-5-2025-08-07") is own
    assert Prices([own]).find("gpt-5") is not own


def test_names_go_from_the_whole_to_the_short() -> None:
    assert list(names_of("x/claude-opus-4-5-20251101[1m]")) == [
        "x/claude-opus-4-5-20251101[1m]", "claude-opus-4-5-20251101[1m]", "claude-opus-4-5-20251101", "claude-opus-4-5",
    ]  # fmt: skip


def test_a_file_of_one_s_own_is_read_exactly() -> None:
    content = b"""[{"model": "a", "inputPer1M": 0.1, "outputPer1M": 0.2, "cacheReadPer1M": 0.01, "cacheWritePer1M": 0.125,
                    "note": "x"},
                   {"model": "b", "inputPer1M": 3, "outputPer1M": 15}]"""
    assert parse_prices(content) == [
        Price("a", Decimal("0.1"), Decimal("0.2"), Decimal("0.01"), Decimal("0.125")),
        Price("b", Decimal(3), Decimal(15)),
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "truncated"),
        (b"{}", "Expected `array`"),
        (b"[{}]", "model"),
        (b'[{"model": "a", "inputPer1M": 1}]', "outputPer1M"),
        (b'[{"model": "", "inputPer1M": 1, "outputPer1M": 1}]', "model"),
        (b'[{"model": "a", "inputPer1M": -1, "outputPer1M": 1}]', "from 0"),
        (b'[{"model": "a", "inputPer1M": 1, "outputPer1M": "NaN"}]', "from 0"),
        (b'[{"model": "a", "inputPer1M": 1, "outputPer1M": "Infinity"}]', "from 0"),
        (b'[{"model": "a", "inputPer1M": 1e300, "outputPer1M": 1}]', "from 0"),
        (b'[{"model": "a", "inputPer1M": 1, "outputPer1M": 1, "cacheReadPer1M": true}]', "cacheReadPer1M"),
        (b"\xff", "invalid"),
        (b'[{"note": ' + b"[" * 100_000, "recursion"),
        (b'[{"model": "\xff", "inputPer1M": 1, "outputPer1M": 1}]', "UTF-8|utf-8"),
    ],
)
def test_a_broken_file_is_told_in_words(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_prices(content)
