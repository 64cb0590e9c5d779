"""SIGKILL while agents over ARC write as fast as they can: what is stored is what the recipient gets, once and in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed

from tests.integration.arc.stage import DEADLINE_S, FREE, Client, Member, Stage

ROUNDS = 2
EACH = 400  # messages of each sender in a round; what waits for one recipient stays below the thousand that are kept
KILL_AFTER = 150  # deliveries of a round: in the middle of it


class Reader(threading.Thread):
    """Gathers what comes until the connection breaks. `heard`: so many of this round, and not of the one before."""

    def __init__(self, client: Client, seen: dict[str, dict[str, Any]], numbers: range) -> None:
        super().__init__()
        self._client = client
        self._seen = seen
        self._numbers = numbers
        self.heard = 0
        self.start()

    def run(self) -> None:
        try:
            while True:
                found = self._client.next()
                self._seen.setdefault(found["id"], found)  # twice with one id is once
                self.heard += found["payload"] in self._numbers
        except ConnectionClosed:
            pass


class Writer(threading.Thread):
    def __init__(self, client: Client, to: str, numbers: range) -> None:
        super().__init__()
        self._client = client
        self._to = to
        self._numbers = numbers
        self.start()

    def run(self) -> None:
        try:
            for number in self._numbers:
                self._client.send([self._to], number)
        except ConnectionClosed:
            pass


def run_until_killed(stage: Stage, senders: list[Member], bob: Member, numbers: range, seen: dict[str, dict[str, Any]]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(stage.connect(member, close_timeout=0.2)) for member in senders]
        reader = Reader(stack.enter_context(stage.connect(bob, close_timeout=0.2)), seen, numbers)
        writers = [Writer(client, bob.id, numbers) for client in clients]
        until = time.monotonic() + DEADLINE_S
        while reader.heard < KILL_AFTER:
            assert time.monotonic() < until, f"{reader.heard} messages came"
            time.sleep(0.001)
        stage.daemon.kill()
        for thread in (reader, *writers):
            thread.join(DEADLINE_S)
            assert not thread.is_alive()
    stage.daemon.start()
    stage.find()


def read_stored(stage: Stage, sender: Member, since: str) -> list[dict[str, Any]]:
    """What the relay has of a sender's messages after that one."""
    found: list[dict[str, Any]] = []
    with stage.connect(sender) as client:
        while True:
            page = client.command("replay", since_message_id=found[-1]["id"] if found else since, limit=500)
            found += page["messages"]
            if not page["more"]:
                return [one for one in found if one["from"] == sender.id]


def test_what_is_stored_is_delivered_once_whenever_the_relay_is_killed(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    bob, *senders = [stage.register(name) for name in ("bob-1", "ann-1", "cid-1")]
    seen: dict[str, dict[str, Any]] = {}
    first: dict[str, str] = {}
    with stage.connect(bob) as recipient:
        for sender in senders:
            with stage.connect(sender) as client:
                client.ask("subscribe", {"agents": ["zoe-1", bob.id]})
                client.send([bob.id], -1)
                first[sender.id] = recipient.next()["id"]
    for turn in range(ROUNDS):
        run_until_killed(stage, senders, bob, range(turn * EACH, (turn + 1) * EACH), seen)
    stored = {sender.id: read_stored(stage, sender, first[sender.id]) for sender in senders}
    wanted = {one["id"] for messages in stored.values() for one in messages}
    assert len(wanted) == sum(map(len, stored.values()))
    assert len(wanted) >= ROUNDS * KILL_AFTER
    with stage.connect(bob) as recipient:
        until = time.monotonic() + DEADLINE_S
        while wanted - seen.keys():
            assert time.monotonic() < until, f"{len(wanted - seen.keys())} stored messages did not come"
            found = recipient.next()
            seen.setdefault(found["id"], found)
    assert seen.keys() - wanted <= set(first.values())  # nothing came that is not stored
    for sender in senders:
        numbers = [one["payload"] for one in seen.values() if one["from"] == sender.id and one["id"] not in first.values()]
        assert numbers == sorted(set(numbers))  # none twice under two ids, none before an earlier one
        assert numbers == [one["payload"] for one in stored[sender.id]]
        with stage.connect(sender) as client:
            assert client.ask("list_subscriptions")["payload"] == {"agents": [bob.id, "zoe-1"]}
        assert stage.http.post("/register", json={"agent_id": sender.id}).status_code == 409
