"""What a program asks on its screen, answered from elsewhere: a real terminal, the real command, and every byte recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.stage import BACKENDS, Stage, until

pytestmark = pytest.mark.terminals
DIALOG = {
    "question": "Do you want to proceed?",
    "options": ["Yes", "No"],
    "keys": {},
    "say": {"Yes": ["it was allowed"], "No": ["it was refused"], "": ["it was refused"]},
}


def permissions(stage: Stage) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(stage.command("permissions", "--json").stdout)["permissions"]
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("word", "option"), [("approve", "Yes"), ("deny", "No")])
def test_a_dialog_is_answered_from_elsewhere(stage: Stage, backend: str, word: str, option: str) -> None:
    bob = stage.start("Bob", backend, look="claude", turns=[{"when": "go", "busy_ms": 50, "dialog": DIALOG, "say": ["done"]}])
    with stage.daemon.connect_sync("Lead") as lead:
        lead.send("Bob", "go")
        (asked,) = until(lambda: permissions(stage), "Bob asks")
        assert (asked["agent"], asked["options"]) == ("Bob", ["Yes", "No"])
        done = stage.command("permissions", word, asked["id"][:12])
        assert (done.returncode, done.stderr) == (0, "")
        until(lambda: [event["option"] for event in bob.events("answered")] == [option], "the program took it")
        assert permissions(stage) == []
        again = stage.command("permissions", word, asked["id"])
        assert (again.returncode, "There is no open permission" in again.stderr) == (1, True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_person_at_the_terminal_is_faster_and_nothing_is_typed_after_them(stage: Stage, backend: str) -> None:
    bob = stage.start(
        "Bob", backend, look="claude", person=backend == "pty",
        turns=[{"when": "go", "busy_ms": 50, "dialog": DIALOG, "say": ["done"]}],
    )  # fmt: skip
    with stage.daemon.connect_sync("Lead") as lead:
        lead.send("Bob", "go")
        (asked,) = until(lambda: permissions(stage), "Bob asks")
        stage.type_keys(bob, "\x1b")
        until(lambda: bob.events("answered"), "the person has decided")
        until(lambda: not permissions(stage), "the relay knows")
        late = stage.command("permissions", "approve", asked["id"])
        assert (late.returncode, "There is no open permission" in late.stderr) == (1, True)
        assert bob.bytes_in("dialog") == b"\x1b"


def test_a_dialog_outlives_the_daemon(stage: Stage) -> None:
    bob = stage.start("Bob", "pty", look="claude", turns=[{"when": "go", "busy_ms": 50, "dialog": DIALOG, "say": ["done"]}])
    with stage.daemon.connect_sync("Lead") as lead:
        lead.send("Bob", "go")
        (asked,) = until(lambda: permissions(stage), "Bob asks")
    stage.daemon.restart()
    (again,) = until(lambda: permissions(stage), "Bob asks the new daemon")
    assert again["id"] == asked["id"]
    assert stage.command("permissions", "deny", asked["id"]).returncode == 0
    until(lambda: [event["option"] for event in bob.events("answered")] == ["No"])
