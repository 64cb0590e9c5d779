"""A stranger on ARC: squatting names, reading what was said before, outliving a token, using up what others may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.arc.stage import FREE, Member, Stage

MakeStage = Callable[..., Stage]


@pytest.fixture
def make_stage() -> Iterator[MakeStage]:
    made: list[Stage] = []

    def make(*flags: str) -> Stage:
        made.append(Stage(DaemonProcess("--port=0", *flags).start()))
        return made[-1]

    yield make
    for stage in made:
        stage.close()
        stage.daemon.remove()


@pytest.fixture
def stage(make_stage: MakeStage) -> Stage:
    return make_stage(*FREE)


def stranger(stage: Stage, address: str = "127.0.0.1") -> httpx.Client:
    return httpx.Client(base_url=stage.url, transport=httpx.HTTPTransport(local_address=address))


def test_a_stranger_cannot_squat_names(stage: Stage) -> None:
    with stranger(stage) as outside:
        assert [outside.post("/register", json={"agent_id": f"name-{n}"}).status_code for n in range(3)] == [401] * 3
    assert stage.register("name-0").id == "name-0"


def test_a_stranger_who_guesses_does_not_lock_the_owner_out(stage: Stage) -> None:
    with stranger(stage) as outside:
        found = [outside.post("/register", headers={"authorization": f"Bearer guess-{n}"}).status_code for n in range(12)]
        assert found[:10] == [401] * 10
        assert found[10:] == [429] * 2
    with stranger(stage, "127.0.0.2") as elsewhere:  # another address of the same machine is no fresh start
        assert elsewhere.post("/register").status_code == 429
    assert stage.register("mine-1").id == "mine-1"


def test_at_an_open_relay_strangers_do_not_use_up_the_owners_registrations(make_stage: MakeStage) -> None:
    stage = make_stage("--arc-open", "--arc-registrations-per-hour=2")
    with stranger(stage) as outside, stranger(stage, "127.0.0.3") as elsewhere:
        assert [outside.post("/register").status_code for _ in range(3)] == [200, 200, 429]
        assert elsewhere.post("/register").status_code == 429
    assert stage.register("mine-1").id == "mine-1"


def test_the_owner_takes_a_squatted_name_back_without_its_mail_going_astray(make_stage: MakeStage) -> None:
    stage = make_stage(*FREE, "--arc-open")
    with stranger(stage) as outside:
        squatter = Member("bob-1", outside.post("/register", json={"agent_id": "bob-1"}).json()["token"])
    with stage.connect() as alice:
        alice.send(["bob-1"], "for the squatter")
        assert alice.ask("ping")["type"] == "pong"
    freed = stage.http.post("/api/v1/arc/agents/bob-1/free")
    assert (freed.status_code, freed.json()) == (200, {"agent_id": "bob-1", "freed": True})
    assert stage.try_upgrade(Authorization=f"Bearer {squatter.token}")[0] == 401
    ours = stage.register("bob-1")
    with stage.connect(ours) as bob, stage.connect() as alice:
        alice.send(["bob-1"], "for the owner")
        assert bob.next()["payload"] == "for the owner"
        assert bob.command("history")["messages"][0]["payload"] == "for the owner"
    stage.daemon.restart()
    stage.find()
    assert stage.try_upgrade(Authorization=f"Bearer {squatter.token}")[0] == 401
    assert stage.try_upgrade(Authorization=f"Bearer {ours.token}")[0] == 101
    assert stage.http.post("/api/v1/arc/agents/nobody-1/free").status_code == 404


def test_who_registers_later_does_not_read_what_was_said_before(stage: Stage) -> None:
    with stage.connect() as alice:
        alice.send(["*"], "said to all, before")
        assert alice.ask("ping")["type"] == "pong"
    late = stage.register()
    with stage.connect(late) as reader:
        assert reader.command("history")["messages"] == []
        assert reader.command("search", query="said")["messages"] == []
        assert reader.command("history", since=0)["messages"] == []
        first = "msg_" + "0" * 26
        assert reader.command("replay", since_message_id=first)["messages"] == []


def test_a_replaced_token_cannot_take_the_registration_over(stage: Stage) -> None:
    member = stage.register()
    old = {"authorization": f"Bearer {member.token}"}
    fresh = stage.http.post("/token/refresh", headers=old).json()["token"]
    assert stage.http.post("/token/refresh", headers=old).status_code == 401
    assert stage.http.request("DELETE", "/register", headers=old).status_code == 401
    assert stage.try_upgrade(Authorization=f"Bearer {member.token}")[0] == 101  # for its grace
    assert stage.try_upgrade(Authorization=f"Bearer {fresh}")[0] == 101
