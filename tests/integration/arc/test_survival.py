"""SIGKILL: registrations, tokens, subscriptions and stored messages are still there, and nothing that was said is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx
from websockets.exceptions import ConnectionClosed

from tests.integration.arc.stage import DEADLINE_S, FREE, Member, Stage


def test_everything_is_still_there_after_a_kill(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    alice, bob, gone = stage.register("alice-1"), stage.register("bob-1"), stage.register("gone-1")
    fresh = stage.http.post("/token/refresh", headers={"authorization": f"Bearer {alice.token}"}).json()["token"]
    stage.http.request("DELETE", "/register", headers={"authorization": f"Bearer {gone.token}"})
    with stage.connect(alice) as client:
        client.ask("subscribe", {"agents": ["bob-1", "zoe-1"]})
        for number in range(5):
            client.send(["bob-1"], number)
        assert len(client.command("history")["messages"]) == 5  # they are in the store
        stage.daemon.restart()
    stage.find()
    with stage.connect(Member("alice-1", fresh)) as client:
        assert client.ask("list_subscriptions")["payload"] == {"agents": ["bob-1", "zoe-1"]}
    with stage.connect(alice):
        pass  # the old token, within its minute
    with stage.connect(bob) as client:
        stored = [client.next() for _ in range(5)]
        assert [one["payload"] for one in stored] == list(range(5))
        assert all(one["stored"] for one in stored)
    for agent_id in ("alice-1", "gone-1"):
        assert stage.http.post("/register", json={"agent_id": agent_id}).status_code == 409
    assert stage.try_upgrade(Authorization=f"Bearer {gone.token}")[0] == 401


class Registering(threading.Thread):
    """One agent after another, until the relay is gone."""

    def __init__(self, stage: Stage, stem: str, enough: threading.Semaphore) -> None:
        super().__init__()
        self._url, self._stem, self._enough = stage.url, stem, enough
        self._headers = stage.daemon.api_headers
        self.found: list[Member] = []
        self.start()

    def run(self) -> None:
        with httpx.Client(base_url=self._url, headers=self._headers) as http:
            while True:
                try:
                    answer = http.post("/register", json={"agent_id": f"{self._stem}-{len(self.found)}"}).json()
                except httpx.HTTPError:
                    return
                self.found.append(Member(answer["agent_id"], answer["token"]))
                self._enough.release()


def test_registrations_that_were_answered_outlive_a_kill(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    enough = threading.Semaphore(0)
    threads = [Registering(stage, f"thread-{number}", enough) for number in range(4)]
    for _ in range(20):
        assert enough.acquire(timeout=DEADLINE_S)
    stage.daemon.kill()
    for thread in threads:
        thread.join(DEADLINE_S)
    stage.daemon.start()
    stage.find()
    for member in [one for thread in threads for one in thread.found]:
        with stage.connect(member) as client:
            assert client.welcome["to"] == [member.id]
        assert stage.http.post("/register", json={"agent_id": member.id}).status_code == 409
    for thread in threads:  # one was under way: whether it was stored or not, its id is not in between
        status = stage.http.post("/register", json={"agent_id": f"{thread._stem}-{len(thread.found)}"}).status_code
        assert status in {200, 409}


def test_tokens_are_not_in_any_file(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    member = stage.register()
    with stage.connect(member) as client:
        client.ask("ping")
    stage.daemon.terminate()
    for path in stage.daemon.directory.rglob("*"):
        if path.is_file():
            assert member.token.encode() not in path.read_bytes(), path


def test_what_was_stored_comes_at_least_once_and_in_order_over_kills(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    alice, bob = stage.register(), stage.register()
    seen: dict[str, int] = {}
    said = 0
    for _ in range(3):
        try:
            with stage.connect(alice) as sender, stage.connect(bob) as recipient:
                for _ in range(40):
                    sender.send([bob.id], said)
                    said += 1
                stored = {one["payload"] for one in sender.command("history", limit=500)["messages"]}
                assert stored == set(range(said))
                stage.daemon.kill()
                while True:  # what the system had taken of it
                    found = recipient.next()
                    seen[found["id"]] = found["payload"]
        except ConnectionClosed:
            stage.daemon.start()
        stage.find()
    with stage.connect(bob) as recipient:
        while len(seen) < said:
            found = recipient.next()
            seen[found["id"]] = found["payload"]
    assert sorted(seen.values()) == list(range(said))
    assert list(seen.values()) == sorted(seen.values())


def test_a_damaged_file_of_registrations_stops_arc_and_nothing_else(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    stage.register()
    stage.daemon.terminate()
    for leftover in stage.daemon.state_dir.glob("arc.sqlite-*"):
        leftover.unlink()
    (stage.daemon.state_dir / "arc.sqlite").write_bytes(b"this is no database" * 100)
    stage.daemon.start()
    stage.find()
    assert stage.http.post("/register").status_code == 503
    assert stage.http.get("/health").status_code == 200
    assert stage.http.get("/api/v1/arc/agents").status_code == 503
    assert "arc_unavailable" in (stage.daemon.state_dir / "daemon.log").read_text()
