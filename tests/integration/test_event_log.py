"""The files of events as they really are: killed in the middle of packing, bounded, damaged, and said so to people."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agent_relay.cli.doctor.findings import Verdict
from agent_relay.cli.doctor.relay import check_relay
from agent_relay.events.types import MessageExchanged, StreamGap
from agent_relay.sdk.locate import locate
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient, encode
from tests.support.event_driver import EventDriver

KILLS = 12
SEED = int(os.environ.get("AGENT_RELAY_CRASH_SEED", random.randrange(10**6)))
BODY = "What is said, of some length, again and again. " * 8

# Appends as fast as it goes, and says the number of each batch once it was told.
WRITER = """
import sys
from agent_relay.storage.jsonl import packer
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.storage.jsonl.writer import Rotation
from tests.support.event_driver import EventDriver, make_note

packer._FIRST_AFTER_S = 0.0
driver = EventDriver(lambda post: JsonlEvents(sys.argv[1] + "/events.jsonl", post, Rotation(40_000)))
driver.open()
while True:
    driver.put(*(make_note(place, text="some words that are said " * 4) for place in range(50)))
    print(driver.appended[-1][0], flush=True)
"""


def test_kill_9_at_any_moment_of_writing_and_packing_loses_nothing_that_was_told(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    told = 0
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(chance.randint(3, 60)):
            told = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split()
        told = int(rest[-1]) if rest and rest[-1].isdigit() else told
    assert list(tmp_path.glob("*.gz")), f"seed {SEED}: nothing was packed"
    driver = EventDriver(lambda post: JsonlEvents(tmp_path / "events.jsonl", post))
    last = driver.open()
    assert last >= told, f"seed {SEED}"
    found = driver.read_all(page=1_000)
    assert found[: last - 1] == list(range(1, last + 1))[: last - 1], f"seed {SEED}"
    assert driver.store.stats().damaged == (), f"seed {SEED}"
    driver.store.close()


def send_many(client: RawClient, count: int) -> None:
    frames = [client.message("Sink", f"{place} {BODY}") for place in range(count)]
    client.write(b"".join(map(encode, frames)))
    for frame in frames:
        client.stored(frame["id"])


def test_what_a_daemon_keeps_is_bounded_and_what_it_keeps_is_whole() -> None:
    with DaemonProcess("--event-bytes=1048576", "--queue-capacity=1000000") as daemon:
        with RawClient(daemon.socket) as client:
            client.greet("Sink")
        with RawClient(daemon.socket) as client:
            client.greet("Alice")
            for _ in range(12):  # more than there is in memory
                send_many(client, 500)
        assert size_of_events(daemon.state_dir) <= 1_048_576
        with daemon.connect_sync(observer=True) as relay:
            deadline = time.monotonic() + 120
            while relay.agents().server["events"]["waiting"]:  # what is still written removes the oldest under the reader
                assert time.monotonic() < deadline
                time.sleep(0.05)
            feed = iter(relay.events(after_seq=0))
            first = next(feed)
            assert isinstance(first, StreamGap)
            assert (first.reason, first.oldest) == (None, first.seq + 1)
            seqs, bodies = [first.seq], []
            while not bodies or bodies[-1] != f"499 {BODY}" or seqs[-1] < relay.agents().server["events"]["last_seq"]:
                event = next(feed)
                seqs.append(event.seq)
                if isinstance(event, MessageExchanged):
                    bodies.append(event.body)
        assert seqs == list(range(seqs[0], seqs[-1] + 1))
        assert len(bodies) > 500
        shown = agent_relay(daemon, "status")
        assert re.search(r"^events +\d[\d,]* so far, [\d.]+ [KM]iB of at most 1(\.0)? MiB, since ", shown, re.MULTILINE), shown


def size_of_events(folder: Path) -> int:
    """Measured again where a segment was packed in between: then it was counted twice, or not at all."""
    while True:
        before = sorted(folder.glob("events*"))
        with contextlib.suppress(FileNotFoundError):
            size = sum(path.stat().st_size for path in before if path.name.endswith((".jsonl", ".jsonl.gz")))
            if sorted(folder.glob("events*")) == before:
                return size


def agent_relay(daemon: DaemonProcess, *words: str) -> str:
    place = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
    found = subprocess.run([sys.executable, "-m", "agent_relay", *words, *place], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_damaged_lines_are_said_to_readers_and_to_people() -> None:
    with DaemonProcess() as daemon:
        with RawClient(daemon.socket) as client:
            client.greet("Alice")
            for place in range(9):
                client.send_stored("Alice", f"word {place}")
        daemon.terminate()
        path = daemon.state_dir / "events.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:4], b"\x00" * 40 + b"\n", lines[5][:-20] + b"\n", *lines[6:]]))
        daemon.start()
        with daemon.connect_sync(observer=True) as relay:
            page = relay.past_events(limit=8)
            (gap,) = [event for event in page.events if isinstance(event, StreamGap)]
            assert (gap.seq, gap.oldest, gap.reason) == (6, 7, "damaged")
            server: dict[str, Any] = relay.agents().server
            assert server["events"]["damaged"] == ["events.jsonl"]
        assert "WARNING: events.jsonl is damaged; a gap stands for the events that cannot be read" in agent_relay(
            daemon, "status"
        )
        assert json.loads(agent_relay(daemon, "status", "--json"))["events"]["damaged"] == ["events.jsonl"]
        place = locate(socket=daemon.socket, state_dir=daemon.state_dir)
        (finding,) = [finding for finding in check_relay(place) if finding.about == "events"]
        assert finding.verdict is Verdict.NOTE
        assert "events.jsonl is damaged" in finding.text


def test_a_file_that_lost_its_end_while_the_daemon_was_down_leaves_a_gap_and_no_number_twice() -> None:
    with DaemonProcess() as daemon:
        with RawClient(daemon.socket) as client:
            client.greet("Alice")
            for place in range(9):
                client.send_stored("Alice", f"word {place}")
        daemon.terminate()
        path = daemon.state_dir / "events.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:4]))
        daemon.start()
        with daemon.connect_sync(observer=True) as relay:
            found = relay.past_events(limit=100).events
        assert [event.seq for event in found] == [1, 2, 3, 4, len(lines) + 1]
        assert isinstance(found[4], StreamGap)
        assert found[4].reason == "damaged"
