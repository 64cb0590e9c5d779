"""What every host shares beside messages: events with the same numbers everywhere, costs, budgets, ARC registrations."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import httpx
import pytest

from agent_relay.daemon.event_scan import scan_events
from agent_relay.events.types import AnyEvent, MessageExchanged, StreamGap
from agent_relay.interpreter import run_module
from agent_relay.sdk.client import RelayClient
from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.hosts import Hosts, joined, run_hosts

PATIENCE_S = 90.0  # a seat that is lost, and a busy machine

_T = TypeVar("_T")


def until(find: Callable[[], _T], what: str) -> _T:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := find()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)
    return found


def read_lines(daemon: DaemonProcess) -> list[dict[str, Any]]:
    """All that are whole: the daemon may be in the middle of the last one."""
    path = daemon.state_dir / "events.jsonl"
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def last_seq(daemon: DaemonProcess) -> int:
    lines = read_lines(daemon)
    return int(lines[-1]["_seq"]) if lines else 0


def settle(hosts: Hosts) -> list[dict[str, Any]]:
    """The events that all hosts have, once none has more than another and nothing more comes."""

    def same() -> bool:
        before = [last_seq(daemon) for daemon in hosts.daemons.values()]
        time.sleep(0.3)  # nothing has happened for so long
        return len({*before, *(last_seq(daemon) for daemon in hosts.daemons.values())}) == 1

    until(same, "every host has every event")
    first, *others = [read_lines(daemon) for daemon in hosts.daemons.values()]
    for other in others:
        assert other == first
    return first


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with run_hosts(3, 1) as found:
        yield found


@pytest.fixture
def web_hosts() -> Iterator[Hosts]:
    with run_hosts(2, 1, ["--port=0"]) as found:
        yield found


class Watcher:
    """Follows the events at one host, over whatever happens to the seat."""

    def __init__(self, client: RelayClient) -> None:
        self._client = client
        self.events: list[AnyEvent] = []

    async def watch(self) -> None:
        async for event in self._client.events(after_seq=0):
            self.events.append(event)

    def bodies(self) -> list[str]:
        return [event.body for event in self.events if isinstance(event, MessageExchanged)]


def test_events_are_the_same_everywhere_and_a_killed_seat_leaves_a_gap_and_no_message_without_its_event(hosts: Hosts) -> None:
    seat = hosts.seat
    first, second = (name for name in hosts.daemons if name != seat)
    words = [f"word {number}" for number in range(120)]

    async def live() -> Watcher:
        async with (
            asyncio.timeout(PATIENCE_S),
            hosts[first].connect("Alice") as alice,
            hosts[second].connect("Bob") as bob,
            hosts[second].connect(observer=True) as looking,
        ):
            watcher = Watcher(looking)
            watching = asyncio.create_task(watcher.watch())

            async def read() -> None:
                async for message in bob.messages():
                    async with message:
                        pass

            reading = asyncio.create_task(read())
            for number, word in enumerate(words):
                if number == 60:
                    hosts[seat].kill()
                await alice.send("Bob", word)
            while len(watcher.bodies()) < len(words):
                await asyncio.sleep(0.05)
            for task in (watching, reading):
                task.cancel()
            return watcher

    watcher = asyncio.run(live())
    hosts[seat].start()  # was away, and catches up
    events = settle(hosts)
    assert [event["_seq"] for event in events] == list(range(1, len(events) + 1)), "a number is missing, or there twice"
    assert [event["body"] for event in events if event["type"] == "message.exchanged"] == words
    gaps = [event for event in events if event["type"] == "stream.gap"]
    assert [(gap["reason"], gap["oldest"]) for gap in gaps] == [("killed", gaps[0]["_seq"] + 1)]
    seen = [event.seq for event in watcher.events]
    assert seen == list(range(seen[0], seen[0] + len(seen))), "the watcher missed something, or saw it twice"
    assert sum(isinstance(event, StreamGap) for event in watcher.events) == 1


def test_a_seat_that_was_stopped_for_a_while_adds_nothing_and_serves_as_an_edge(hosts: Hosts) -> None:
    seat = hosts.seat
    edge = next(name for name in hosts.daemons if name != seat)

    async def live() -> None:
        async with asyncio.timeout(PATIENCE_S), hosts[edge].connect("Alice") as alice, hosts[seat].connect("Sam") as sam:
            for number in range(20):
                await alice.send("*", f"before {number}")
            os.kill(hosts[seat].pid, signal.SIGSTOP)
            stale = asyncio.create_task(sam.send("*", "into the stopped seat"))
            for number in range(20):
                await alice.send("*", f"after {number}")
            os.kill(hosts[seat].pid, signal.SIGCONT)
            await stale

    asyncio.run(live())
    events = settle(hosts)
    assert [event["_seq"] for event in events] == list(range(1, len(events) + 1))
    bodies = [event["body"] for event in events if event["type"] == "message.exchanged"]
    expected = [*(f"before {number}" for number in range(20)), *(f"after {number}" for number in range(20))]
    assert [body for body in bodies if body != "into the stopped seat"] == expected
    assert bodies.count("into the stopped seat") == 1
    assert sum(event["type"] == "stream.gap" for event in events) == 1


def test_a_seat_that_says_goodbye_leaves_no_gap_and_costs_are_known_at_every_host(hosts: Hosts) -> None:
    seat = hosts.seat
    edge = next(name for name in hosts.daemons if name != seat)
    with joined(hosts[edge], "Alice") as alice:
        alice.report("tokens.used", sessionId="s", agentName="Alice", model="claude-opus-4-5", inputTokens=1000, outputTokens=0)
        until(lambda: any(event["type"] == "tokens.used" for event in read_lines(hosts[edge])), "it is recorded")
        assert hosts[seat].terminate() == 0
        until(lambda: hosts.seat != seat, "another host has the seat")
        alice.send("*", "hello")
        alice.report("tokens.used", sessionId="s", agentName="Alice", model="claude-opus-4-5", inputTokens=500, outputTokens=0)
        hosts[seat].start()

        def spent() -> bool:
            return all(costs_at(daemon)["total"]["inputTokens"] == 1500 for daemon in hosts.daemons.values())

        until(spent, "every host knows the costs")
    events = settle(hosts)
    assert [event["_seq"] for event in events] == list(range(1, len(events) + 1))
    assert not [event for event in events if event["type"] == "stream.gap"]


def costs_at(daemon: DaemonProcess) -> dict[str, Any]:
    command = [*run_module("agent_relay"), "costs", "--json", "--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=daemon.directory)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def http_of(hosts: Hosts) -> httpx.Client:
    """The API of the host that has the seat."""

    seat = hosts[hosts.seat]
    url = seat.wait_for_url()

    def serves() -> bool:
        """Its address is the same before it has the seat."""
        return httpx.get(f"{url}/api/v1/status", timeout=PATIENCE_S, headers=seat.api_headers).status_code == 200

    until(serves, "the seat serves HTTP")
    return httpx.Client(base_url=url, timeout=PATIENCE_S, headers=seat.api_headers)


def read_stream(http: httpx.Client, after_seq: int, to_seq: int) -> list[int]:
    """The numbers after that one, as a browser gets them that comes back with it."""
    found: list[int] = []
    with http.stream("GET", "/api/v1/events/sse", headers={"Last-Event-ID": str(after_seq)}) as answer:
        for line in answer.iter_lines():
            if line.startswith("id:"):
                found.append(int(line[3:]))
                if found[-1] >= to_seq:
                    break
    return found


def register(http: httpx.Client, agent_id: str, invitation: str) -> httpx.Response:
    """As somebody who has nothing but the invitation."""
    return httpx.post(f"{http.base_url}/register", json={"agent_id": agent_id, "invite": invitation}, timeout=PATIENCE_S)


def test_budgets_and_registrations_are_where_the_seat_is(web_hosts: Hosts) -> None:
    hosts = web_hosts
    seat = hosts.seat
    (other,) = (name for name in hosts.daemons if name != seat)
    usage = {"sessionId": "s", "agentName": "Alice", "model": "claude-opus-4-5", "outputTokens": 0}
    with joined(hosts[other], "Alice") as alice:
        with http_of(hosts) as http:
            assert http.post("/api/v1/costs/budget", json={"maxTotal": 10, "action": "pause-spawning"}).status_code == 200
            invitation = http.post("/api/v1/arc/invitations", json={"uses": 2}).json()["invite"]
            member = register(http, "dora-1", invitation).json()
            alice.report("tokens.used", inputTokens=1_200_000, **usage)  # six dollars
            until(lambda: http.get("/api/v1/costs").json()["total"]["inputTokens"] == 1_200_000, "it is counted")
            assert (
                http.post("/api/v1/sessions", json={"agent": "N", "cli": "no-such"}).json()["error"]["code"] == "INVALID_TARGET"
            )
            before = read_stream(http, 0, last_seq(hosts[seat]))
        hosts[seat].kill()
        until(lambda: hosts.seat == other, "the other host has the seat")
        with http_of(hosts) as http:
            assert http.get("/api/v1/costs/budget").json()["maxTotal"] == 10
            after = read_stream(http, before[-1], last_seq(hosts[other]))
            assert [*before, *after] == list(range(1, after[-1] + 1)), "a reader missed something, or saw it twice"
            alice.send("*", "back again")
            alice.report("tokens.used", inputTokens=1_200_000, **usage)

            def exceeded() -> list[tuple[str, float]]:
                found = http.get("/api/v1/events", params={"types": "budget.exceeded"}).json()["events"]
                return [(each["budget"], each["spentUsd"]) for each in found if each["type"] == "budget.exceeded"]

            assert until(exceeded, "the limit is reached") == [("total", 12)]
            refused = http.post("/api/v1/sessions", json={"agent": "N", "cli": "no-such"}).json()["error"]
            assert refused["details"]["reason"] == "spawning_paused"
            again = register(http, "dora-1", invitation)
            assert again.json()["error"] == "agent_id_taken"
            bearer = {"Authorization": f"Bearer {member['token']}"}
            assert http.post("/token/refresh", headers=bearer).json()["agent_id"] == "dora-1"
            assert register(http, "carl-1", invitation).status_code == 200
            assert register(http, "carl-2", invitation).status_code == 401


def test_a_proposal_goes_on_at_another_host_with_its_votes_and_its_deadline() -> None:
    with run_hosts(2, servers=1) as hosts:
        seat = hosts.seat
        (other,) = (name for name in hosts.daemons if name != seat)
        with joined(hosts[other], "Alice") as alice, joined(hosts[other], "Bob") as bob:
            proposal = alice.propose("Move the seat", ["Alice", "Bob"], rule="unanimous", timeout=3_600)
            bob.vote(proposal.id, "approve", "before")
            hosts[seat].kill()
            until(lambda: hosts.seat == other, "the other host has the seat")
            found = alice.vote(proposal.id, "approve").info
            assert (found.outcome, found.votes["Bob"].reason) == ("approved", "before")
            assert found.expires_at == proposal.info.expires_at
            assert proposal.outcome(PATIENCE_S) == "approved"
            until(lambda: bob.receive(PATIENCE_S).kind == "consensus", "Bob is told")


def test_events_of_a_time_alone_are_the_beginning_or_are_put_aside() -> None:
    """The first host goes on with its own numbers; another one's mean other events, and make room."""
    with run_hosts(0, 1) as hosts:
        for name in "ab":
            daemon = hosts.add(name)
            flags, daemon.flags = daemon.flags, ()
            daemon.start()
            with daemon.connect_sync("Alice") as alice:
                for number in range(3 if name == "a" else 9):
                    alice.send("*", f"alone {name} {number}")
                until(lambda daemon=daemon: "message.exchanged" in json.dumps(read_lines(daemon)), "it is recorded")  # type: ignore[misc]
            daemon.terminate()
            daemon.flags = flags
            for path in daemon.state_dir.glob("messages.sqlite*"):  # whose messages the other hosts could never get
                path.unlink()
        alone = read_lines(hosts["a"])
        hosts["a"].start()
        until(hosts.seats, "the first host has the seat")
        hosts["b"].start()
        with joined(hosts["b"], "Carol") as carol:
            carol.send("*", "together")
            until(lambda: "together" in json.dumps(read_lines(hosts["b"])), "it is recorded")
        until(lambda: last_seq(hosts["a"]) == last_seq(hosts["b"]), "both have the same")
        assert read_lines(hosts["a"])[: len(alone)] == alone
        assert read_lines(hosts["b"]) == read_lines(hosts["a"])[len(alone) :]
        (aside,) = hosts["b"].state_dir.glob("events-alone-*")
        assert "alone b 8" in (aside / "events.jsonl").read_text()


def test_a_host_that_was_away_for_too_long_says_what_it_missed() -> None:
    with run_hosts(2, 1, [f"--event-bytes={1024 * 1024}"]) as hosts:
        seat = hosts.seat
        (away,) = (name for name in hosts.daemons if name != seat)
        with joined(hosts[away], "Alice") as alice:
            alice.send("*", "the first")
            until(lambda: "the first" in json.dumps(read_lines(hosts[away])), "it is recorded")
        until(lambda: last_seq(hosts[away]) == last_seq(hosts[seat]), "both have the same")
        known = last_seq(hosts[away])
        hosts[away].kill()

        async def fill() -> None:
            async with asyncio.timeout(PATIENCE_S), hosts[seat].connect("Sam") as sam:  # who left may still be Alice
                await asyncio.gather(*(sam.send("*", f"{number} {'x' * 6_000}") for number in range(400)))
                await sam.send("*", "the last")

        asyncio.run(fill())
        hosts[away].start()
        until(lambda: "the last" in json.dumps(read_lines(hosts[away])), "it has caught up")
        gaps = [event for event in scan_events(str(hosts[away].state_dir), "stream.gap") if isinstance(event, StreamGap)]
        assert [(gap.oldest, gap.reason) for gap in gaps] == [(gaps[0].seq + 1, None)]
        assert gaps[0].oldest > known + 1
