"""What a program asks on its screen, decided over HTTP: a real terminal, a scripted CLI that records every byte it is given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stage import until

from .scene import ASKS, DIALOG, TASK, Scene, stopped
from .server import Server, problem

MakeScene = Callable[..., Scene]
ANSWERS = 8
# Each has a command in it that is approved when it stands alone.
TRICKS = (
    "ls; rm -rf x",
    "git status && make install",
    "git status || true",
    "ls $(touch x)",
    "ls `touch x`",
    "ls\nrm -rf x",
    "ls\r\nrm x",
    "git log --output=x",
    "git diff --ext-diff",
    "ls | sh",
    "ls > x",
    "ls & rm x",
    "ls <(rm x)",
    "\u217cs",  # a Roman numeral that looks like an l
    "ｌｓ",
    "git\u00a0status",
    "git status\u200b",
    "'ls'",
    "l\\s",
    "PAGER=x git log",
    "/tmp/ls",
    "LS",
    " ls",
    "ls ",
    "ls #",
    "ls\0",
    "ls\t-la",
    "",
)


@pytest.fixture
def make_scene(folder: Path) -> Iterator[MakeScene]:
    made: list[Scene] = []

    def make(*turns: dict[str, Any], settings: str = "") -> Scene:
        made.append(Scene(folder, *turns, settings=settings))
        return made[-1]

    yield make
    for scene in made:
        scene.close()


def resolved(scene: Scene) -> list[tuple[str, str, str | None]]:
    until(lambda: scene.events("permission.resolved"), "it is recorded")
    return [(event["resolution"], event["resolvedBy"], event.get("reason")) for event in scene.events("permission.resolved")]


@pytest.mark.terminals
@pytest.mark.parametrize(("verdict", "option", "outcome"), [("approve", "Yes", "approved"), ("deny", "No", "denied")])
def test_it_is_held_until_somebody_decides_and_goes_on(make_scene: MakeScene, verdict: str, option: str, outcome: str) -> None:
    scene = make_scene(ASKS)
    session = scene.spawn(TASK)
    asked = scene.asked()
    assert (asked["agentName"], asked["options"], asked["riskLevel"]) == ("Bob", ["Yes", "No"], "medium")
    assert asked in scene.http.get("/api/v1/permissions").json()["permissions"]
    until(lambda: scene.http.get("/api/v1/agents/Bob").json()["state"] == "waiting", "it is seen to wait")
    waiting = scene.http.post(f"/api/v1/sessions/{session}/messages", json={"message": "for later"}).json()["messageId"]
    assert (scene.chosen(), scene.typed_into_dialogs()) == ([], False)

    decided = scene.decide(asked, verdict, "As it should be.")
    assert (decided.status_code, decided.json()) == (200, {"success": True})
    assert scene.chosen() == [option]
    until(lambda: scene.said_over_http() == ["went on"], "it goes on with its turn")
    until(lambda: any("for later" in event["text"] for event in scene.recorded("submitted")), "what waited is delivered")
    assert scene.permissions() == []
    assert resolved(scene) == [(outcome, "human", "As it should be.")]
    assert [event["requestId"] for event in scene.events("permission.*")] == [asked["requestId"]] * 2
    assert problem(scene.decide(asked, verdict)) == (409, "PERMISSION_DENIED")
    until(lambda: scene.http.get(f"/api/v1/messages/{waiting}").json()["recipients"][0]["status"] == "delivered", "it is taken")


@pytest.mark.terminals
@pytest.mark.parametrize("look", [{}, {"look": "claude"}], ids=str)
def test_a_dialog_that_has_changed_meanwhile_gets_nothing(make_scene: MakeScene, look: dict[str, Any]) -> None:
    """The person at the terminal cancels it and gets another one, while the wrapper cannot look."""
    scene = make_scene()
    other = {"when": "more", "busy_ms": 20, "dialog": DIALOG | {"question": "Do you want to proceed and delete it?"}}
    bob = scene.stage.start("Bob", "tmux", turns=[ASKS, other], **look)
    scene.http.post("/api/v1/messages", json={"to": "Bob", "body": TASK})
    asked = scene.asked()
    with ThreadPoolExecutor(1) as elsewhere:
        with stopped(bob.process.pid):
            scene.stage.type_keys(bob, "\x1b")
            until(lambda: bob.events("answered"), "it is cancelled")
            until(lambda: bob.events("mode")[-1]["mode"] == "prompt", "the prompt is back")
            scene.stage.type_keys(bob, "more\r")
            until(lambda: [event["mode"] for event in bob.events("mode")].count("dialog") == 2, "there is another dialog")
            before = bob.bytes_in("dialog")
            late = elsewhere.submit(scene.decide, asked, "approve")
            until(late.running, "it is on its way")
        (now,) = until(lambda: [each for each in scene.permissions() if each["requestId"] != asked["requestId"]], "it asks anew")
        assert "delete" in now["description"]
        assert (bob.bytes_in("dialog"), before) == (b"\x1b", b"\x1b")
        denied = scene.decide(now, "deny")  # also while the wrapper still looks for the dialog that is gone
        assert problem(late.result()) == (409, "PERMISSION_DENIED")
    assert denied.status_code == 200, denied.text
    assert [event["option"] for event in bob.events("answered")] == ["", "No"]


@pytest.mark.terminals
def test_of_many_answers_at_once_one_is_carried_out(make_scene: MakeScene) -> None:
    scene = make_scene(ASKS)
    scene.spawn(TASK)
    asked = scene.asked()
    together = threading.Barrier(ANSWERS)

    def answer(number: int) -> tuple[str, int]:
        verdict = "approve" if number % 2 else "deny"
        together.wait()
        return verdict, scene.decide(asked, verdict).status_code

    with ThreadPoolExecutor(ANSWERS) as people:
        found = list(people.map(answer, range(ANSWERS)))
    assert sorted(status for _, status in found) == [200] + [409] * (ANSWERS - 1)
    (winner,) = [verdict for verdict, status in found if status == 200]
    assert scene.chosen() == ["Yes" if winner == "approve" else "No"]
    until(lambda: scene.said_over_http() == ["went on"], "it goes on, once")
    assert len(resolved(scene)) == 1


@pytest.mark.terminals
def test_what_nobody_decides_in_time_is_denied_and_recorded(make_scene: MakeScene) -> None:
    scene = make_scene(ASKS, settings='[permissions]\ntimeout = "2s"\n')
    scene.spawn(TASK)
    asked = scene.asked()
    assert resolved(scene) == [("timeout", "policy", "Nobody decided in time.")]
    assert scene.chosen() == ["No"]
    until(lambda: scene.said_over_http() == ["went on"], "it goes on without")
    late = scene.decide(asked, "approve")
    assert problem(late) == (409, "PERMISSION_DENIED")
    assert late.json()["error"]["message"] == "It is already closed (timeout by policy)."


@pytest.mark.parametrize("command", TRICKS, ids=repr)
def test_no_trick_gets_around_a_person(server: Server, command: str) -> None:
    """Also where the CLI itself says exactly what it wants to run."""
    bob = server.wrap()
    bob.ask_permission("p1", command=command, isExact=True)
    bob.ask_permission("p2", command="pwd", isExact=True)
    until(lambda: [told.id for told in bob.told] == ["p2"], "the plain one is approved by the policy")
    assert bob.told[0].by == "policy"
    (waits,) = server.http.get(f"/api/v1/agents/{bob.name}/permissions").json()["permissions"]
    assert (waits["requestId"], waits["command"]) == ("p1", command)
