"""Prices of models: the built-in list, the user's own entries before it, and which entry a model's name means.

Prices are US dollars for a million tokens, as the providers list them for their own API in the ordinary service tier and
for prompts of ordinary length. What a subscription, a batch or a very long prompt really costs is not known here; reports
call the sum an estimate. A model that is in neither list has no price, and none is guessed for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

PRICES_AS_OF = "2026-10"  # of the providers' pages named below, or of lists that quote them
COST_MODELS_FILE = "cost-models.json"  # in AGENT_RELAY_HOME

# model, input, output, cache read, cache write (for five minutes); None where the provider has no such price
_Row = tuple[str, str, str, str | None, str | None]
_CLAUDE: tuple[_Row, ...] = (  # platform.claude.com/docs/en/about-claude/pricing
    ("claude-fable-5-1", "10", "50", "0.25", "12.5"),
    ("claude-fable-5", "10", "50", "1", "12.5"),
    ("claude-opus-5-5", "4", "20", "0.2", "5"),
    ("claude-opus-5", "5", "25", "0.5", "6.25"),
    ("claude-opus-4-8", "5", "25", "0.5", "6.25"),
    ("claude-opus-4-7", "5", "25", "0.5", "6.25"),
    ("claude-opus-4-6", "5", "25", "0.5", "6.25"),
    ("claude-opus-4-5", "5", "25", "0.5", "6.25"),
    ("claude-opus-4-1", "15", "75", "1.5", "18.75"),
    ("claude-opus-4-0", "15", "75", "1.5", "18.75"),
    ("claude-opus-4", "15", "75", "1.5", "18.75"),
    ("claude-3-opus", "15", "75", "1.5", "18.75"),
    ("claude-sonnet-5-5", "2", "10", "0.2", "2.5"),
    ("claude-sonnet-5", "2", "10", "0.2", "2.5"),
    ("claude-sonnet-4-6", "3", "15", "0.3", "3.75"),
    ("claude-sonnet-4-5", "3", "15", "0.3", "3.75"),
    ("claude-sonnet-4-0", "3", "15", "0.3", "3.75"),
    ("claude-sonnet-4", "3", "15", "0.3", "3.75"),
    ("claude-3-7-sonnet", "3", "15", "0.3", "3.75"),
    ("claude-3-5-sonnet", "3", "15", "0.3", "3.75"),
    ("claude-haiku-5-5", "0.1", "0.5", "0.01", "0.125"),
    ("claude-haiku-4-5", "1", "5", "0.1", "1.25"),
    ("claude-3-5-haiku", "0.8", "4", "0.08", "1"),
    ("claude-3-haiku", "0.25", "1.25", "0.03", "0.3"),
)
_OPENAI: tuple[_Row, ...] = (  # developers.openai.com/api/docs/pricing
    ("gpt-5.6-sol", "5", "30", "0.5", "6.25"),
    ("gpt-5.6-terra", "2", "12", "0.2", "2.5"),
    ("gpt-5.6-luna", "0.2", "1.2", "0.02", "0.25"),
    ("gpt-5.5", "5", "30", "0.5", None),
    ("gpt-5.4", "2.5", "15", "0.25", None),
    ("gpt-5.4-mini", "0.75", "4.5", "0.075", None),
    ("gpt-5.4-nano", "0.2", "1.25", "0.02", None),
    ("gpt-5.3-codex", "1.75", "14", "0.175", None),
    ("gpt-5.2-codex", "1.75", "14", "0.175", None),
    ("gpt-5.2", "1.75", "14", "0.175", None),
    ("gpt-5-codex", "1.25", "10", "0.125", None),
    ("gpt-5", "1.25", "10", "0.125", None),
    ("gpt-5-mini", "0.25", "2", "0.025", None),
    ("gpt-5-nano", "0.05", "0.4", "0.005", None),
)
_GEMINI: tuple[_Row, ...] = (  # ai.google.dev/gemini-api/docs/pricing; the Flash prices from 3.6 on hold until the end of 2026
    ("gemini-3.8-flash", "0.75", "3.75", "0.075", None),
    ("gemini-3.7-flash", "0.75", "3.75", "0.075", None),
    ("gemini-3.6-flash", "0.75", "3.75", "0.075", None),
    ("gemini-3.5-flash", "1.5", "9", "0.15", None),
    ("gemini-3.1-pro", "2", "12", "0.2", None),
    ("gemini-2.5-pro", "1.25", "10", "0.125", None),
    ("gemini-2.5-flash", "0.3", "2.5", "0.03", None),
    ("gemini-2.5-flash-lite", "0.1", "0.4", "0.01", None),
)

_MAX_PRICE = Decimal(1_000_000)  # a dollar a token; beyond that somebody has mistaken the unit
_VERSION = re.compile(r"[-@](?:latest|preview|exp|\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{2}|\d{2}-\d{4}|\d{3})$")
_BRACKETS = re.compile(r"\[[^\[\]]*\]$")  # `[1m]`: the same model with a longer context


class Price(Struct, frozen=True, rename={"input_per_1m": "inputPer1M", "output_per_1m": "outputPer1M",
             "cache_read_per_1m": "cacheReadPer1M", "cache_write_per_1m": "cacheWritePer1M"}):  # fmt: skip
    """Without a price of their own cached tokens are charged as input: so do providers that have none."""

    model: Annotated[str, Meta(min_length=1, max_length=200)]
    input_per_1m: Decimal
    output_per_1m: Decimal
    cache_read_per_1m: Decimal | None = None
    cache_write_per_1m: Decimal | None = None

    def __post_init__(self) -> None:
        for amount in (self.input_per_1m, self.output_per_1m, self.cache_read_per_1m, self.cache_write_per_1m):
            if amount is not None and not (amount.is_finite() and 0 <= amount <= _MAX_PRICE):
                raise ValueError(f"A price must be from 0 to {_MAX_PRICE} dollars per million tokens, not {amount}.")


class Prices:
    """`own` entries go before the built-in ones; of two for the same model the first counts."""

    def __init__(self, own: Iterable[Price] = ()) -> None:
        self._tables = [_by_model(own), _BUILT_IN]

    def find(self, model: str) -> Price | None:
        """The entry of exactly this name; else that of the name without what only says which version of the model it is."""
        names = list(names_of(model))
        return next((table[name] for table in self._tables for name in names if name in table), None)


def names_of(model: str) -> Iterator[str]:
    """`anthropic/claude-opus-4-5-20251101[1m]`, then shorter ones down to `claude-opus-4-5`."""
    name = model.strip().lower()
    yield name
    if "/" in name:
        name = name.rpartition("/")[2]
        yield name
    for ending in (_BRACKETS, _VERSION, _VERSION):
        shorter = ending.sub("", name)
        if shorter != name:
            name = shorter
            yield name


def parse_prices(content: bytes) -> list[Price]:
    """The entries of a cost-models.json; raises ValueError with a sentence that says what is wrong."""
    try:
        return msgspec.json.decode(content, type=list[Price])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _by_model(prices: Iterable[Price]) -> dict[str, Price]:
    table: dict[str, Price] = {}
    for price in prices:
        table.setdefault(price.model.strip().lower(), price)
    return table


def _optional(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


_BUILT_IN = _by_model(
    Price(model, Decimal(given), Decimal(answered), _optional(read), _optional(written))
    for model, given, answered, read, written in (*_CLAUDE, *_OPENAI, *_GEMINI)
)
