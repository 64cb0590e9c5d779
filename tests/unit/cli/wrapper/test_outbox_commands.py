"""When `send` goes through the outbox of the agent it is run in."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.wrapper import outbox_commands
from agent_relay.cli.wrapper.outbox_commands import own_outbox, send_through
from agent_relay.protocol.headers import parse_headers
from agent_relay.protocol.short_ids import short_id


def test_only_inside_an_agent_that_speaks_as_itself_to_its_own_daemon(tmp_path: Path) -> None:
    inside = {"AGENT_RELAY_NAME": "Bob", "AGENT_RELAY_OUTBOX": str(tmp_path), "AGENT_RELAY_SOCKET": "/s"}
    assert own_outbox(None, "/s", inside) == str(tmp_path)
    assert own_outbox("bob", "/s", inside) == str(tmp_path)
    assert own_outbox("Eve", "/s", inside) is None
    assert own_outbox(None, "/other", inside) is None
    assert own_outbox(None, "/s", {**inside, "AGENT_RELAY_OUTBOX": str(tmp_path / "gone")}) is None
    assert own_outbox(None, "/s", {"AGENT_RELAY_NAME": "Bob"}) is None


def test_everything_asked_for_stands_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []

    def wrapper() -> None:
        deadline = time.monotonic() + 10
        while not (files := list(tmp_path.glob("send-*"))) and time.monotonic() < deadline:
            time.sleep(0.01)
        found.append(parse_headers(files[0].read_text("utf-8")))
        files[0].unlink()
        Path(f"{files[0]}.sent").write_text('{"message_id": "msg_1", "recipients": 2, "queued": 1}')

    taking = threading.Thread(target=wrapper)
    taking.start()
    options = {"kind": "action", "thread": "t", "topic": None, "priority": 1, "reply_to": "msg_0", "ttl_ms": 5_000}
    assert (
        send_through(str(tmp_path), Screen(), ["Bob", "Carol"], "a\n\nb\n", options, as_json=False, wait_ms=None, reply_ms=None)
        == 0
    )
    taking.join()
    assert capsys.readouterr().out == f"stored  {short_id('msg_1')}  2 recipients, 1 offline\n"
    (message,) = found
    assert (message.to, message.body, message.kind, message.thread) == (("Bob", "Carol"), "a\n\nb\n", "action", "t")
    assert (message.priority, message.reply_to, message.ttl_ms) == (1, "msg_0", 5_000)
    assert list(tmp_path.iterdir()) == []


def test_a_wrapper_that_is_away_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_commands, "ANSWER_S", 0.1)
    with pytest.raises(Failure, match="stays in the outbox"):
        send_through(str(tmp_path), Screen(), "Bob", "hi", {}, as_json=False, wait_ms=None, reply_ms=None)
    assert len(list(tmp_path.iterdir())) == 1
