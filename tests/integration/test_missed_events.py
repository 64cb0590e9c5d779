"""A daemon that is killed has stored messages whose events it could not write any more: the next one tells them."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import Any

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient, encode

ROUNDS = 6
BURST = 100


def read_events(daemon: DaemonProcess, *types: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in (daemon.state_dir / "events.jsonl").read_text().splitlines()]
    return [event for event in events if not types or event["type"] in types]


def read_messages(daemon: DaemonProcess) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{daemon.state_dir}/messages.sqlite?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT id, client_id FROM messages ORDER BY number").fetchall()


def flood_and_kill(daemon: DaemonProcess, client: RawClient, word: str, acknowledged: int) -> None:
    """Kills it in the middle of much to do, soon after so many messages were acknowledged as stored."""
    sent = heard = 0
    while heard < acknowledged:
        frames = [client.message("Sink", f"{word} {sent + place}", id=f"{word}-{sent + place}") for place in range(BURST)]
        sent += BURST
        client.write(b"".join(map(encode, frames)))
        heard += len(client.listen(0.01, "ACK"))
    daemon.kill()


def test_every_stored_message_has_its_event_once_and_in_order_after_kills_under_load() -> None:
    with DaemonProcess("--queue-capacity=1000000", f"--queue-bytes={2**40}") as daemon:
        with RawClient(daemon.socket) as client:
            client.greet("Sink")
        for life in range(ROUNDS):
            with RawClient(daemon.socket) as client:
                client.greet("Alice" if life % 2 else "Bob")
                flood_and_kill(daemon, client, f"life{life}", 100 + 150 * life)
            daemon.start()
        daemon.terminate()
        messages, events = read_messages(daemon), read_events(daemon)
    assert len(messages) > 1_000
    assert [event["_seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["_ts"] for event in events] == sorted(event["_ts"] for event in events)
    exchanged = [event for event in events if event["type"] == "message.exchanged"]
    assert [event["messageId"] for event in exchanged] == [id_ for id_, _ in messages]
    assert [event["body"] for event in exchanged] == [client_id.replace("-", " ") for _, client_id in messages]
    gaps = [event for event in events if event["type"] == "stream.gap"]
    assert [(gap["reason"], gap["oldest"]) for gap in gaps] == [("killed", gap["_seq"] + 1) for gap in gaps]
    assert len(gaps) == ROUNDS


def test_a_derived_event_says_what_the_lost_one_said() -> None:
    with DaemonProcess() as daemon:
        with RawClient(daemon.socket) as alice, RawClient(daemon.socket) as bob:
            alice.greet("Alice")
            bob.greet("Bob")
            for client in (alice, bob):
                client.request("CHANNEL_JOIN", {"channel": "#dev"})
            alice.send_stored("Bob", "plain ✓")
            alice.send_stored("*", "to all")
            alice.send_stored("#dev", "to a channel")
            bob.send_stored(["Alice", "Bob"], "to two", payload={"thread": "t-1", "kind": "action"})
            bob.send_stored("Alice", "with data", payload={"data": {"n": 1}})
            bob.send_stored(None, "on a topic", topic="news")
        daemon.terminate()
        told = read_events(daemon, "message.exchanged")
        assert len(told) == 6
        lose_events(daemon)
        daemon.start()
        derived = read_events(daemon)
        daemon.terminate()
        daemon.start()
        assert read_events(daemon) == derived, "what was derived once is told"
    assert derived[0]["type"] == "stream.gap"
    assert derived[0]["_ts"] > 1_600_000_000_000, "else the file would seem to be old, and be put aside"
    assert [event | {"_seq": 0} for event in derived[1:]] == [event | {"_seq": 0} for event in told]
    assert [event["_seq"] for event in derived] == list(range(1, 8))


def test_who_asks_for_what_comes_gets_nothing_of_what_was_lost() -> None:
    with DaemonProcess() as daemon:
        with RawClient(daemon.socket) as client:
            client.greet("Alice")
            client.send_stored("Alice", "before")
        daemon.terminate()
        lose_events(daemon)
        daemon.start()
        with daemon.connect_sync(observer=True) as relay:
            feed = relay.events(["message.exchanged"])
            with RawClient(daemon.socket) as client:
                client.greet("Alice")
                client.send_stored("Alice", "after")
            assert next(iter(feed)).body == "after"


def test_where_nobody_knows_what_was_told_a_gap_stands_for_it_once() -> None:
    with DaemonProcess() as daemon:
        with RawClient(daemon.socket) as client:
            client.greet("Alice")
            client.send_stored("Alice", "before")
        daemon.terminate()
        for name in ("events.jsonl", "events.life"):
            (daemon.state_dir / name).unlink()
        for _ in range(2):
            daemon.start()
            daemon.terminate()
        (gap,) = read_events(daemon)
        assert (gap["type"], gap["reason"]) == ("stream.gap", "killed")
        assert gap["_ts"] > 1_600_000_000_000


def lose_events(daemon: DaemonProcess) -> None:
    """As if the daemon had been killed before it wrote the first of them."""
    mark = daemon.state_dir / "events.life"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"closed": False, "last_seq": 0, "message": 0}))
    os.utime(mark, (1_700_000_000, 1_700_000_000))  # it was written before anything happened
    (daemon.state_dir / "events.jsonl").write_bytes(b"")
