"""`arc`: registering, listening, sending and checking, against a small relay."""

from __future__ import annotations

import io
import json
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.cli.main import main
from tests.arc.shell import Shell
from tests.arc.small_relay import SmallRelay

DEADLINE_S = 60.0


@pytest.fixture
def relay() -> Iterator[SmallRelay]:
    with SmallRelay() as running:
        yield running


@pytest.fixture
def arc(relay: SmallRelay, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.delenv("AGENT_RELAY_ARC_TOKEN", raising=False)
    return Shell(capsys, "--url", relay.url, "--state-dir", str(tmp_path / "state"))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_a_token_is_shown_once_and_kept_privately(arc: Shell, relay: SmallRelay, tmp_path: Path) -> None:
    shown = arc("arc", "register", "bob-7")
    (token,) = relay.agents
    assert token in shown
    assert "bob-7" in shown
    assert stat.S_IMODE(((tmp_path / "state") / "arc-tokens.json").stat().st_mode) == 0o600
    listed = arc("arc", "tokens") + arc("arc", "tokens", "--json")
    assert "bob-7" in listed
    assert token not in listed
    assert arc.json("arc", "register")["agent_id"].startswith("agent-")


def test_a_refusal_is_a_sentence(arc: Shell) -> None:
    arc("arc", "register", "bob-7")
    assert "agent_id_taken" in arc("arc", "register", "bob-7", status=1)
    assert "invalid_agent_id" in arc("arc", "register", "B", status=1)


def test_without_a_token_the_way_to_one_is_said(arc: Shell) -> None:
    assert "agent-relay arc register" in arc("arc", "send", "bob", "hi", status=1)
    arc("arc", "register", "one")
    arc("arc", "register", "two")
    assert "--as (one, two)" in arc("arc", "send", "bob", "hi", status=2)
    assert "of three" in arc("arc", "send", "bob", "hi", "--as", "three", status=1)


def test_sending_and_listening(arc: Shell, relay: SmallRelay) -> None:
    arc("arc", "register", "bob-7")
    arc("arc", "register", "alice")
    sent = arc.json("arc", "send", "bob-7", "first", "--as", "alice")
    assert sent["from"] == "alice"
    assert sent["id"] == relay.log[-1]["id"]
    arc("arc", "send", "bob-7", '{"n": 2}', "--parse", "--as", "alice")
    lines = [json.loads(line) for line in arc("arc", "listen", "--as", "bob-7", "--limit", "2", "--json").splitlines()]
    assert [(line["payload"], line["stored"]) for line in lines] == [("first", True), ({"n": 2}, True)]
    assert "needs JSON" in arc("arc", "send", "bob-7", "{", "--parse", "--as", "alice", status=2)


def test_a_broadcast_reaches_who_listens(arc: Shell, relay: SmallRelay) -> None:
    arc("arc", "register", "bob-7")
    arc("arc", "register", "alice")

    def talk() -> None:
        wait_until(lambda: "bob-7" in relay.peers)
        main(arc.words("arc", "send", "*", "to all", "--as", "alice"))

    talking = threading.Thread(target=talk)
    talking.start()
    shown = arc("arc", "listen", "--as", "bob-7", "--limit", "1")
    talking.join()
    assert "alice → *" in shown
    assert "to all" in shown


def test_a_token_from_the_environment_a_file_or_standard_input(
    arc: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = arc.json("arc", "register", "bob-7")["token"]
    ((tmp_path / "state") / "arc-tokens.json").unlink()
    (tmp_path / "token").write_text(token + "\n")
    assert arc.json("arc", "send", "carol", "x", "--token-file", str(tmp_path / "token"))["from"] == "bob-7"
    monkeypatch.setattr(sys, "stdin", io.StringIO(token + "\n"))
    assert arc.json("arc", "send", "carol", "x", "--token-file", "-")["from"] == "bob-7"
    monkeypatch.setenv("AGENT_RELAY_ARC_TOKEN", token)
    assert arc.json("arc", "send", "carol", "x")["from"] == "bob-7"
    monkeypatch.setenv("AGENT_RELAY_ARC_TOKEN", "tok_wrong")
    assert "does not accept the token" in arc("arc", "send", "carol", "x", status=1)


def test_revoking_ends_the_token_and_forgets_it(arc: Shell, relay: SmallRelay) -> None:
    arc("arc", "register", "bob-7")
    arc("arc", "revoke", "bob-7")
    assert relay.agents == {}
    assert arc.json("arc", "tokens")["agents"] == []
    assert "only its holder" in arc("arc", "revoke", "bob-7", status=1)


def test_checking_a_relay(arc: Shell, relay: SmallRelay) -> None:
    shown = arc("arc", "conformance", "--section", "routing", "--section", "connection")
    assert '✓ `["*"]` reaches every connected agent' in shown
    assert "follows the protocol" in shown
    relay.faults.add("echoes-broadcasts")
    report = json.loads(arc("arc", "conformance", "--section", "routing", "--timeout", "2", "--json", status=1))
    assert report["conforms"] is False
    assert [rule["name"] for rule in report["sections"][0]["rules"] if rule["outcome"] == "broken"] == [
        "broadcasts-to-all-but-the-sender"
    ]
    assert "Unknown section" in arc("arc", "conformance", "--section", "nonsense", status=2)


def test_advice_counts_only_when_asked_for(arc: Shell, relay: SmallRelay) -> None:
    relay.faults.add("drops-fields")
    assert "1 piece of advice" in arc("arc", "conformance", "--section", "relay-assigned fields")
    assert "does not pass" in arc("arc", "conformance", "--section", "relay-assigned fields", "--strict", status=1)


def test_a_relay_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arc", "conformance", "--url", "ws://127.0.0.1:1/arc", "--state-dir", str(tmp_path)]) == 1
    assert "could not be checked" in capsys.readouterr().err
    assert main(["arc", "tokens", "--state-dir", str(tmp_path)]) == 3
    assert "agent-relay up" in capsys.readouterr().err
