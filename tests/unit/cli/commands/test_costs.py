"""`costs`: the table, the sums, and prices that are not known."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from agent_relay.cli.commands.costs import format_cost
from agent_relay.cli.main import main
from agent_relay.events.codec import encode_event
from agent_relay.events.costs import Breakdown
from agent_relay.events.types import TokensUsed

HOUR_MS = 3_600_000


class Recorded:
    """A project with events, and no daemon."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self.state = folder / "home", folder / "state"
        self.home.mkdir()
        self.state.mkdir()
        self._capsys = capsys
        self._seq = 0

    def use(self, agent: str, model: str, given: int, answered: int, read: int = 0, hours_ago: int = 0) -> None:
        self._seq += 1
        event = TokensUsed(
            seq=self._seq, ts=time.time_ns() // 1_000_000 - hours_ago * HOUR_MS - 60_000, by_agent=agent, by_session=f"s-{agent}",
            session_id=f"s-{agent}", agent_name=agent, model=model, input_tokens=given, output_tokens=answered,
            cache_read_tokens=read,
        )  # fmt: skip
        with (self.state / "events.jsonl").open("ab") as file:
            file.write(encode_event(event) + b"\n")

    def run(self, *words: str) -> tuple[int, str, str]:
        status = main(["costs", "--state-dir", str(self.state), *words])
        shown = self._capsys.readouterr()
        return status, shown.out, shown.err


@pytest.fixture
def recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Recorded:
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))
    return Recorded(tmp_path, capsys)


def test_nothing_used_is_said(recorded: Recorded) -> None:
    assert recorded.run() == (0, "No token usage was recorded.\n", "")


def test_the_table_has_agents_models_and_the_total(recorded: Recorded) -> None:
    recorded.use("Alice", "claude-sonnet-4-5-20250929", 1_000_000, 100_000, 2_000_000)
    recorded.use("Bob", "gpt-5", 10_000, 1_000)
    status, out, err = recorded.run()
    assert (status, err) == (0, "")
    assert [line.split() for line in out.splitlines()] == [
        ["input", "output", "cache", "read", "cache", "write", "cost"],
        ["by", "agent"],
        ["Alice", "1,000,000", "100,000", "2,000,000", "0", "$5.10"],
        ["Bob", "10,000", "1,000", "0", "0", "$0.0225"],
        ["by", "model"],
        ["claude-sonnet-4-5-20250929", "1,000,000", "100,000", "2,000,000", "0", "$5.10"],
        ["gpt-5", "10,000", "1,000", "0", "0", "$0.0225"],
        ["total", "1,010,000", "101,000", "2,000,000", "0", "$5.12"],
        [],
        out.splitlines()[-1].split(),
    ]
    assert "Estimated" in out.splitlines()[-1]


def test_an_unknown_price_is_said_plainly(recorded: Recorded) -> None:
    recorded.use("Alice", "mystery\x1b[2J", 70, 5)
    recorded.use("Bob", "gpt-5", 1_000_000, 0)
    _, out, _ = recorded.run()
    assert "mystery\\x1b[2J" in out
    assert "unknown" in next(line for line in out.splitlines() if "Alice" in line)
    assert "$1.25 + unknown" in next(line for line in out.splitlines() if line.startswith("total"))
    assert "No price is known for mystery\\x1b[2J: 75 tokens not included." in out
    assert str(recorded.home / "cost-models.json") in out


def test_prices_of_one_s_own_count(recorded: Recorded) -> None:
    recorded.use("Alice", "mystery", 1_000_000, 0)
    (recorded.home / "cost-models.json").write_text('[{"model": "mystery", "inputPer1M": 7, "outputPer1M": 7}]')
    _, out, err = recorded.run()
    assert "$7.00" in out
    assert "unknown" not in out
    assert err == ""


def test_a_broken_price_file_is_warned_of_and_the_report_is_there(recorded: Recorded) -> None:
    recorded.use("Alice", "gpt-5", 1_000_000, 0)
    (recorded.home / "cost-models.json").write_text("{")
    status, out, err = recorded.run()
    assert status == 0
    assert "$1.25" in out
    assert "cost-models.json is ignored" in err


def test_the_range_and_the_agent_are_heard(recorded: Recorded) -> None:
    recorded.use("Alice", "gpt-5", 1, 0, hours_ago=50)
    recorded.use("Alice", "gpt-5", 10, 0, hours_ago=5)
    recorded.use("Bob", "gpt-5", 100, 0)

    def total(*words: str) -> int:
        return int(json.loads(recorded.run("--json", *words)[1])["total"]["inputTokens"])

    assert total() == 111
    assert total("--since", "24h") == 110
    assert total("--until", "24h") == 1
    assert total("--since", "24h", "--until", "2h") == 10
    assert total("--agent", "alice") == 11
    assert total("--session", "s-Bob") == 100
    assert recorded.run("--since", "yesterday-ish")[0] == 2


def test_json_has_the_names_of_the_api(recorded: Recorded) -> None:
    recorded.use("Alice", "gpt-5", 1_000_000, 0)
    report = json.loads(recorded.run("--json")[1])
    assert set(report) == {"total", "byAgent", "byModel", "bySession", "unpricedModels", "pricesAsOf"}
    assert report["byAgent"]["Alice"]["estimatedCostUsd"] == 1.25
    assert list(report["bySession"]) == ["s-Alice"]


@pytest.mark.parametrize(
    ("usd", "unpriced", "shown"),
    [
        (0.0, 0, "$0.00"), (1234.5, 0, "$1,234.50"), (0.1, 0, "$0.10"), (0.0225, 0, "$0.0225"), (0.00001, 0, "< $0.0001"),
        (None, 5, "unknown"), (2.0, 5, "$2.00 + unknown"),
    ],
)  # fmt: skip
def test_costs_as_people_read_them(usd: float | None, unpriced: int, shown: str) -> None:
    assert format_cost(Breakdown(1, 1, 0, 0, 2, unpriced, usd)) == shown
