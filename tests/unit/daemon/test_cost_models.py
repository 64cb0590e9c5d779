"""cost-models.json: used where it can be, and a clear warning where not."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from agent_relay.daemon.cost_models import _MAX_BYTES, load_prices
from agent_relay.events.prices import Prices


def input_price(prices: Prices, model: str) -> Decimal | None:
    price = prices.find(model)
    return None if price is None else price.input_per_1m


def test_without_a_file_the_built_in_prices_hold(tmp_path: Path) -> None:
    loaded = load_prices(str(tmp_path))
    assert loaded.warning == ""
    assert loaded.path == str(tmp_path / "cost-models.json")
    assert input_price(loaded.prices, "gpt-5") == Decimal("1.25")


def test_a_home_that_is_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    assert load_prices(str(tmp_path / "home")).warning == ""


def test_the_file_goes_before_the_built_in_prices(tmp_path: Path) -> None:
    (tmp_path / "cost-models.json").write_text('[{"model": "gpt-5", "inputPer1M": 0.1, "outputPer1M": 2}]')
    loaded = load_prices(str(tmp_path))
    assert loaded.warning == ""
    assert input_price(loaded.prices, "gpt-5-2025-08-07") == Decimal("0.1")
    assert input_price(loaded.prices, "gpt-5-mini") == Decimal("0.25")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b'[{"model": "x"}]', b'[{"model": "gpt-5", "inputPer1M": -1, "outputPer1M": 1}]']
)
def test_a_broken_file_is_told_and_the_built_in_prices_hold(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cost-models.json").write_bytes(content)
    loaded = load_prices(str(tmp_path))
    assert "cost-models.json is ignored, and the built-in prices are used: " in loaded.warning
    assert loaded.warning.endswith(".")
    assert not loaded.warning.endswith("..")
    assert input_price(loaded.prices, "gpt-5") == Decimal("1.25")


def test_the_example_of_the_page_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "costs.md").read_text("utf-8")
    (tmp_path / "cost-models.json").write_text(re.findall(r"```json\n(.*?)```", page, re.DOTALL)[0])
    loaded = load_prices(str(tmp_path))
    assert loaded.warning == ""
    assert input_price(loaded.prices, "our-own-model") == 0


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "cost-models.json").mkdir()
    assert "directory" in load_prices(str(tmp_path)).warning


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "cost-models.json").open("wb") as file:
        file.truncate(_MAX_BYTES + 1)
    assert "larger than" in load_prices(str(tmp_path)).warning
