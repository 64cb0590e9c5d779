"""The relay through the CLIs' own doors, from `agent-relay send` to the model and back: nothing is typed."""

from __future__ import annotations

import json

import pytest

from tests.real_clis.harness import Agent, Lab
from tests.real_clis.model.script import Turn, on_message

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(300)]

DOORS = {"claude": "claude inbox", "codex": "codex app-server", "opencode": "opencode server"}
every_cli = pytest.mark.parametrize("cli", list(DOORS))


def trail(lab: Lab, message_id: str) -> list[tuple[str, str]]:
    steps = json.loads(lab.command("explain", message_id, "--json").stdout)["trail"]
    return [(step["event"], str(step.get("door") or "")) for step in steps]


def start(lab: Lab, cli: str, *turns: Turn) -> Agent:
    return lab.start(cli, "Bob", turns, doors=True)


@every_cli
def test_door_in_and_out(lab: Lab, cli: str) -> None:
    bob = start(lab, cli, Turn(when=on_message("are you ready"), say="->relay:Carol <<<\nyes,\nI am\n>>>\n->relay:Carol done"))
    with lab.client("Carol") as carol:
        sent = lab.send("Bob", "are you ready?", "Carol2")
        assert carol.receive(timeout=60).body == "yes,\nI am"
        assert carol.receive(timeout=60).body == "done"
    lab.wait_until_settled(bob, 1)
    bob.until(lambda: "read" in dict(trail(lab, sent)), "it is read")
    assert ("injected", DOORS[cli]) in trail(lab, sent)
    assert bob.model.times_given("are you ready?") == 1, bob.describe()


@every_cli
def test_door_burst(lab: Lab, cli: str) -> None:
    bob = start(lab, cli, Turn(when="message 0,", say="working on it", drips=True))
    lab.send("Bob", "message 0, then more")
    bob.until(lambda: bob.model.script.is_dripping, "it works")
    bob.type("half a draft")
    for number in range(1, 21):
        lab.send("Bob", f"message {number}, of 20")
    bob.model.script.release()
    lab.wait_until_settled(bob, 21)
    bob.until(lambda: all(bob.model.times_given(f"message {n}, of 20") for n in range(1, 21)), "the model has them all")
    assert all(bob.model.times_given(f"message {n}, of 20") == 1 for n in range(1, 21)), bob.describe()
    assert "half a draft" in bob.screen, bob.describe()


@every_cli
def test_door_dialog(lab: Lab, cli: str) -> None:
    bob = start(lab, cli, Turn(when=on_message("clean"), command="rm -rf build", then="Cleaned."))
    lab.send("Bob", "clean up, please")
    bob.until(lambda: bob.is_asking, "it asks")
    lab.send("Bob", "one more thing")
    assert (lab.project / "build" / "out.o").exists()
    assert bob.is_asking
    bob.approve()
    bob.until(lambda: bob.model.times_given("one more thing"), "the model has it")
    lab.wait_until_settled(bob, 2)
    assert bob.model.times_given("one more thing") == 1, bob.describe()


def open_request(lab: Lab) -> str:
    found = json.loads(lab.command("permissions", "--json").stdout or "{}")
    return next((str(each["id"]) for each in found.get("permissions", [])), "")


@every_cli
def test_door_answer(lab: Lab, cli: str) -> None:
    bob = start(
        lab, cli, Turn(when=on_message("clean"), command="rm -rf build", then="->relay:Carol it is clean"),
        Turn(when=on_message("wipe"), command="rm -rf build2", then="->relay:Carol they said no"),
    )  # fmt: skip
    (lab.project / "build2").mkdir()
    with lab.client("Carol") as carol:
        lab.send("Bob", "clean up, please")
        bob.until(lambda: open_request(lab), "it is asked outside")
        assert (lab.project / "build" / "out.o").exists()
        done = lab.command("permissions", "approve", open_request(lab))
        assert done.returncode == 0, done.stderr + bob.describe()
        assert carol.receive(timeout=60).body == "it is clean"
        assert not (lab.project / "build").exists()
        lab.send("Bob", "wipe the other one")
        bob.until(lambda: open_request(lab), "it is asked again")
        done = lab.command("permissions", "deny", open_request(lab), "--reason", "keep it")
        assert done.returncode == 0, done.stderr + bob.describe()
        bob.until(lambda: not bob.is_asking, "the dialog is closed")
        assert (lab.project / "build2").exists(), bob.describe()


@every_cli
def test_door_daemon_dies(lab: Lab, cli: str) -> None:
    bob = start(lab, cli, Turn(when=on_message("first"), say="one moment", drips=True))
    lab.send("Bob", "first of all")
    bob.until(lambda: bob.model.script.is_dripping, "it works")
    second = lab.send("Bob", "second of all")
    lab.daemon.kill()
    lab.daemon.start()
    third = lab.send("Bob", "third of all")
    bob.model.script.release()
    bob.until(lambda: bob.model.times_given("second of all") and bob.model.times_given("third of all"), "the model has them")
    lab.wait_until_settled(bob, 3)
    assert bob.model.times_given("second of all") == bob.model.times_given("third of all") == 1, bob.describe()
    bob.until(lambda: "read" in dict(trail(lab, second)) and "read" in dict(trail(lab, third)), "both are read")
