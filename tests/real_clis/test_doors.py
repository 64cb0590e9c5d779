"""The relay through the CLIs' own doors, from `agent-relay send` to the model and back: each scene once, for all that have one.

What a CLI cannot do is in door_clis.py. The scene then proves what happens instead, and the table says what and why.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import pytest

from tests.real_clis.door_clis import DOOR_CLIS, DoorCli
from tests.real_clis.harness import DEADLINE_S, Agent, Lab, receive
from tests.real_clis.model.script import Turn, on_message

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900)]
every_cli = pytest.mark.parametrize("cli", list(DOOR_CLIS))

SILENCE_S = 3.0  # that nothing happens meanwhile is what is tested
DRAFT = "half a draft"
COUNT = Turn(on_message("count"), say="counted to the end", drips=True)
CLEAN = Turn(on_message("clean up"), command="rm -rf build", then="It is clean.")
Note = Callable[[str, str], None]


@pytest.fixture
def own(cli: str, request: pytest.FixtureRequest, record_property: Note) -> DoorCli:
    """The CLI of this run. What it cannot do in this scene goes into the table."""
    scene = str(request.function.__name__).removeprefix("test_door_")
    limit = DOOR_CLIS[cli].limits.get(scene)
    if limit is not None:
        record_property("note", limit)
    return DOOR_CLIS[cli]


def start(lab: Lab, own: DoorCli, *turns: Turn) -> Agent:
    return lab.start(own.name, "Bob", turns, doors=True)


def start_counting(lab: Lab, own: DoorCli, *turns: Turn) -> Agent:
    """In the middle of an answer, until the script is released."""
    bob = start(lab, own, *turns, COUNT)
    lab.send("Bob", "count")
    bob.until(bob.model.script.is_dripping.is_set, "it works")
    return bob


def start_asking(lab: Lab, own: DoorCli, *turns: Turn) -> Agent:
    bob = start(lab, own, *turns, CLEAN)
    lab.send("Bob", "clean up")
    bob.until(lambda: bob.is_asking, "it asks")
    return bob


def until_handed(lab: Lab, bob: Agent, *message_ids: str) -> None:
    _until_step(lab, bob, "handed", message_ids)


def until_read(lab: Lab, bob: Agent, *message_ids: str) -> None:
    _until_step(lab, bob, "read", message_ids)


def _until_step(lab: Lab, bob: Agent, step: str, message_ids: Sequence[str]) -> None:
    waiting = list(message_ids)

    def look() -> bool:
        waiting[:] = [id_ for id_ in waiting if step not in lab.trail(id_)]
        return not waiting

    bob.until(look, f"{', '.join(message_ids)}: {step}")


def door_of(lab: Lab, message_id: str) -> str:
    return str(lab.trail(message_id)["injected"]["door"])


def asked_outside(lab: Lab) -> str:
    """The id of the one open permission, whoever sees it: a door, the screen, or both. It can be given from outside."""
    found = json.loads(lab.command("permissions", "--json").stdout or "{}").get("permissions", [])
    assert len(found) <= 1, found
    return next((str(each["id"]) for each in found if each.get("can_allow") is not False), "")


def decide(bob: Agent, own: DoorCli, ask: Callable[[], object], accepted: object) -> None:
    """From outside, by whichever way. Where keys are pressed for it, a busy machine may leave the dialog open: then once more."""

    def has_answered() -> bool:
        said = ask()
        assert said == accepted or "approve" in own.limits, bob.describe()
        return said == accepted or not bob.is_asking

    bob.until(has_answered, "it is answered from outside")


def is_built(lab: Lab) -> bool:
    """Nothing has deleted it yet."""
    return (lab.project / "build").exists()


# --- messages --------------------------------------------------------------------------------------------------------------


@every_cli
def test_door_idle(lab: Lab, own: DoorCli) -> None:
    """A turn begins at once, the answer comes back, and `agents` names the door."""
    say = "->relay:Carol <<<\nyes,\nI am\n>>>\n->relay:Carol done"
    bob = start(lab, own, Turn(on_message("are you ready"), say=say))
    with lab.client("Carol") as carol:
        sent = lab.send("Bob", "are you ready?")
        assert receive(carol, bob) == "yes,\nI am"
        assert receive(carol, bob) == "done"
    lab.wait_until_settled(bob, 1)
    assert door_of(lab, sent) == own.way_to_idle()
    assert bob.model.times_given("are you ready?") == 1, bob.describe()
    agents: list[dict[str, Any]] = json.loads(lab.command("agents", "--json").stdout)["agents"]
    assert [agent["door"] for agent in agents if agent["name"] == "Bob"] == [own.door]


@every_cli
def test_door_busy(lab: Lab, own: DoorCli) -> None:
    """The answer that is being written is not cut off."""
    aloud = COUNT._replace(say=f"->relay:Carol {COUNT.say}")
    bob = start_counting(lab, own, aloud, Turn(on_message("meanwhile"), say="->relay:Carol heard it"))
    with lab.client("Carol") as carol:
        sent = lab.send("Bob", "meanwhile")
        until_handed(lab, bob, sent)
        assert bob.told() == ["count"], bob.describe()
        bob.model.script.release()
        assert receive(carol, bob) == COUNT.say
        assert receive(carol, bob) == "heard it"
    lab.wait_until_settled(bob, 2)
    assert door_of(lab, sent) == own.door
    assert bob.told() == ["count", "meanwhile"], bob.describe()
    assert all(answered.is_whole for answered in bob.model.answered), bob.describe()


@every_cli
def test_door_dialog(lab: Lab, own: DoorCli) -> None:
    """Words that look like answers leave it alone; they come after the person has permitted it."""
    bob = start_asking(lab, own)
    bodies = [f"yes y 1 number {number}" for number in range(3)]
    until_handed(lab, bob, *(lab.send("Bob", body) for body in bodies))
    time.sleep(SILENCE_S)
    assert bob.is_asking, bob.describe()
    assert is_built(lab), bob.describe()
    assert bob.told() == ["clean up"], bob.describe()
    bob.approve()
    bob.until(lambda: not is_built(lab), "the command runs once it is permitted")
    lab.wait_until_settled(bob, 4)
    bob.until(lambda: len(bob.told()) >= 4, "the model is told")
    assert bob.told() == ["clean up", *bodies], bob.describe()


@every_cli
def test_door_draft(lab: Lab, own: DoorCli) -> None:
    """What a person has half written stays in the composer, while it works and when it is idle again."""
    bob = start_counting(lab, own)
    bob.type(DRAFT)
    bob.until(lambda: DRAFT in bob.screen, "the draft is seen")
    sent = lab.send("Bob", "while it works")
    until_handed(lab, bob, sent)
    bob.model.script.release()
    until_read(lab, bob, sent)
    bob.until(lambda: DRAFT in bob.screen, "the draft is there")
    sent = lab.send("Bob", "while it is idle")
    if "draft" in own.limits:
        bob.until(lambda: "half-written draft" in bob.log, "the message waits")
        bob.press(*["BSpace"] * len(DRAFT))
        until_read(lab, bob, sent)
    else:
        until_read(lab, bob, sent)
        bob.until(lambda: DRAFT in bob.screen, "the draft is there")
    bob.until(lambda: len(bob.told()) >= 3, "the model is told")
    assert bob.told() == ["count", "while it works", "while it is idle"], bob.describe()
    assert bob.model.times_given(DRAFT) == 0, bob.describe()


@every_cli
def test_door_burst(lab: Lab, own: DoorCli) -> None:
    """Twenty at once while it works: all of them, in order, each once, each known to be read."""
    bob = start_counting(lab, own)
    bodies = [f"message {number} of 20" for number in range(1, 21)]
    with lab.client("Eve") as eve:
        sent = [eve.send("Bob", body).message_id for body in bodies]
    bob.model.script.release()
    lab.wait_until_settled(bob, 21)
    bob.until(lambda: len(bob.told()) >= 21, "the model is told")
    assert bob.told() == ["count", *bodies], bob.describe()
    until_read(lab, bob, *sent)


@every_cli
def test_door_read(lab: Lab, own: DoorCli, record_property: Note) -> None:
    """Not before the agent has it, and by the program's own record."""
    bob = start_counting(lab, own)
    sent = lab.send("Bob", "did you read this?")
    until_handed(lab, bob, sent)
    assert not {"injected", "read"} & set(lab.trail(sent))
    bob.model.script.release()
    until_read(lab, bob, sent)
    trail = lab.explain(sent)
    assert [name for name in trail if name in ("handed", "injected", "read")] == ["handed", "injected", "read"]
    assert (trail["injected"]["door"], trail["read"]["evidence"]) == (own.door, own.evidence)
    record_property("note", own.proof)


# --- permissions -------------------------------------------------------------------------------------------------------------


@every_cli
def test_door_approve(lab: Lab, own: DoorCli) -> None:
    with lab.client("Carol") as carol:
        bob = start_asking(lab, own, CLEAN._replace(then="->relay:Carol it is clean"))
        request = bob.until(lambda: asked_outside(lab), "it is asked outside")
        assert is_built(lab)
        decide(bob, own, lambda: lab.command("permissions", "approve", request).returncode, 0)
        assert receive(carol, bob) == "it is clean"
    assert not is_built(lab)
    assert not json.loads(lab.command("permissions", "--json").stdout)["permissions"]


@every_cli
def test_door_deny(lab: Lab, own: DoorCli) -> None:
    """Nothing is run, and the agent can be talked to as before."""
    bob = start_asking(lab, own)
    request = bob.until(lambda: asked_outside(lab), "it is asked outside")
    decide(bob, own, lambda: lab.command("permissions", "deny", request, "--reason", "keep it").returncode, 0)
    bob.until(lambda: not bob.is_asking and not asked_outside(lab), "the dialog is closed")
    lab.send("Bob", "and now?")
    bob.until(lambda: bob.times_told("and now?"), "the model is told")
    assert is_built(lab), bob.describe()


@every_cli
def test_door_person_first(lab: Lab, own: DoorCli) -> None:
    """Refused at the terminal: a permission from outside comes too late, is told so, and changes nothing."""
    bob = start_asking(lab, own)
    request = bob.until(lambda: asked_outside(lab), "it is asked outside")
    own.refuse(bob)
    bob.until(lambda: not bob.is_asking and not asked_outside(lab), "the dialog is closed")
    late = lab.command("permissions", "approve", request)
    assert (late.returncode, "There is no open permission" in late.stderr) == (1, True), late
    lab.send("Bob", "and now?")
    bob.until(lambda: bob.times_told("and now?"), "the model is told")
    assert is_built(lab), bob.describe()


@every_cli
def test_door_http(lab: Lab, own: DoorCli) -> None:
    """Permitted and refused by whoever asks the API; 409 once the person at the terminal was first."""
    wiping = Turn(on_message("wipe"), command="rm -rf other")
    (lab.project / "other").mkdir()
    lab.daemon.restart("--port=0")
    url, headers = lab.daemon.wait_for_url(), lab.daemon.api_headers
    with httpx.Client(base_url=url, timeout=DEADLINE_S, headers=headers) as http:

        def asked() -> str:
            found = http.get("/api/v1/agents/Bob/permissions").json()["permissions"]
            assert len(found) <= 1, found
            return next((str(each["requestId"]) for each in found if each["canAllow"]), "")

        def answer(id_: str, word: str) -> int:
            said = http.post(f"/api/v1/agents/Bob/permissions/{id_}/{word}", json={"reason": "as agreed"})
            return said.status_code

        bob = start_asking(lab, own, wiping)
        first = bob.until(asked, "it is asked over HTTP")
        decide(bob, own, lambda: answer(first, "approve"), 200)
        bob.until(lambda: not is_built(lab), "it is run")
        assert answer(first, "approve") == 409
        lab.send("Bob", "wipe the other")
        second = bob.until(asked, "it asks again")
        decide(bob, own, lambda: answer(second, "deny"), 200)
        bob.until(lambda: not bob.is_asking and not asked(), "the dialog is closed")
        assert (lab.project / "other").exists(), bob.describe()
        lab.send("Bob", "wipe it after all")
        third = bob.until(asked, "it asks once more")
        bob.until(lambda: bob.is_asking, "the dialog is seen")
        bob.approve()
        bob.until(lambda: not (lab.project / "other").exists() and not asked(), "the person has permitted it")
        assert answer(third, "deny") == 409


# --- what breaks -------------------------------------------------------------------------------------------------------------


@every_cli
def test_door_daemon_dies(lab: Lab, own: DoorCli) -> None:
    """Killed and started again between two messages: both come, in order, once, and are known to be read."""
    bob = start_counting(lab, own)
    before = lab.send("Bob", "before the kill")
    until_handed(lab, bob, before)
    lab.daemon.restart()
    after = lab.send("Bob", "after the kill")
    bob.model.script.release()
    lab.wait_until_settled(bob, 3)
    bob.until(lambda: len(bob.told()) >= 3, "the model is told")
    until_read(lab, bob, before, after)
    assert bob.told() == ["count", "before the kill", "after the kill"], bob.describe()


@every_cli
def test_door_wrapper_dies(lab: Lab, own: DoorCli) -> None:
    """The program outlives it; what the killed one had handed over is found, and not handed over again."""
    bob = start_counting(lab, own)
    before = lab.send("Bob", "before the kill")
    until_handed(lab, bob, before)
    lab.wrap_again(bob)
    after = lab.send("Bob", "after the kill")
    bob.until(lambda: f"{after}: handed to {own.door}" in bob.log, "the next one is handed over")
    bob.model.script.release()
    lab.wait_until_settled(bob, 3)
    bob.until(lambda: len(bob.told()) >= 3, "the model is told")
    assert bob.told() == ["count", "before the kill", "after the kill"], bob.describe()


@every_cli
def test_door_removed(lab: Lab, own: DoorCli, record_property: Note) -> None:
    """In the middle of a turn: nothing is lost, nothing comes twice, and another way is found."""
    bob = start_counting(lab, own)
    before = lab.send("Bob", "before it goes")
    until_handed(lab, bob, before)
    script = bob.model.script
    own.take_away(lab, bob)
    after = lab.send("Bob", "after it went")
    until_handed(lab, bob, after)
    script.release()
    lab.wait_until_settled(bob, 3)
    until_read(lab, bob, before, after)
    bob.until(lambda: {"before it goes", "after it went"} <= set(bob.told()), "the model is told")
    assert (bob.times_told("before it goes"), bob.times_told("after it went")) == (1, 1), bob.describe()
    assert door_of(lab, after) == own.next_way, bob.describe()
    record_property("note", own.loss)
