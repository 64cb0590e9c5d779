"""Agents in real terminals, started and controlled over HTTP; every byte that the program is given is recorded."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.http_api.scene import Scene
from tests.integration.http_api.server import ME, problem
from tests.integration.stage import until

pytestmark = pytest.mark.terminals
BOB = "/api/v1/agents/Bob"
CHOICE = {"question": "Which database should we use?", "options": ["Postgres", "SQLite"], "keys": {}}


@pytest.fixture
def scene(folder: Path) -> Iterator[Scene]:
    made = Scene(folder, {"when": "choose", "busy_ms": 20, "dialog": CHOICE, "say": [f"->relay:{ME} chosen"]})
    yield made
    made.close()


def messages(scene: Scene) -> list[str]:
    """Bodies of those that the program took; before them it is introduced to the relay."""
    texts = [event["text"] for event in scene.recorded("submitted")]
    return [text.partition("]: ")[2] for text in texts if text.startswith("Relay message from ")]


def typed(scene: Scene) -> bytes:
    return b"".join(base64.b64decode(event["bytes"]) for event in scene.recorded("input"))


def test_a_message_to_a_session_is_typed_into_its_terminal(scene: Scene) -> None:
    """What is written to a session goes into the agent's terminal, once, and the answer names the message."""
    session = scene.spawn()
    sent = scene.http.post(f"/api/v1/sessions/{session}/messages", json={"message": "begin here"}).json()
    until(lambda: messages(scene) == ["begin here"], "the program has it")
    assert sent["success"]
    assert scene.http.get(f"/api/v1/messages/{sent['messageId']}").json()["body"] == "begin here"


def test_a_paused_agent_is_given_nothing_until_it_is_resumed(scene: Scene) -> None:
    """While an agent is paused its messages wait; when it is resumed they come, all of them and in order."""
    scene.spawn()
    until(lambda: scene.recorded("started"), "the program reads")
    assert scene.http.post(f"{BOB}/pause").json() == {"success": True}
    until(lambda: scene.http.get(BOB).json()["paused"], "the wrapper knows")
    for body in ("one", "two", "three"):
        assert scene.http.post("/api/v1/messages", json={"to": "Bob", "body": body}).status_code == 201
    inbox = scene.stage.daemon.state_dir / "team" / "Bob" / "inbox.md"
    until(lambda: inbox.exists() and "> three" in inbox.read_text("utf-8"), "the wrapper has all of them")
    assert scene.http.post(f"{BOB}/input", json={"text": "x"}).json() == {"success": True}
    until(lambda: typed(scene) == b"x", "what is typed now comes before them")
    assert scene.recorded("submitted") == []
    scene.http.post(f"{BOB}/input", json={"text": "\x7f"})
    assert scene.http.post(f"{BOB}/resume").json() == {"success": True}
    until(lambda: messages(scene) == ["one", "two", "three"], "they are given")


def test_a_stopped_agent_is_released(scene: Scene) -> None:
    """Stopping an agent ends its program and its session, which is told."""
    session = scene.spawn()
    assert scene.http.post(f"{BOB}/stop").json() == {"success": True}
    path = f"/api/v1/sessions/{session}"
    until(lambda: scene.http.get(path).json()["status"] == "ended", "its session ends")
    (ended,) = until(lambda: scene.events("session.ended"), "it is told")
    assert (ended["sessionId"], ended["reason"]) == (session, scene.http.get(path).json()["reason"])
    until(lambda: scene.http.get(BOB).json()["state"] == "offline", "it is gone")


def test_raw_input_is_typed_as_it_is(scene: Scene) -> None:
    """What is given as input reaches the program byte by byte; a line feed is Enter."""
    scene.spawn()
    until(lambda: scene.recorded("started"), "the program reads")
    assert scene.http.post(f"{BOB}/input", json={"text": "hi there\n"}).json() == {"success": True}
    until(lambda: [event["text"] for event in scene.recorded("submitted")] == ["hi there"], "it is submitted")
    assert typed(scene) == b"hi there\r"


def test_a_question_is_answered_by_its_option(scene: Scene) -> None:
    """A question of the program waits for a person; the answer chooses the option of that text, and both are told."""
    scene.spawn("please choose")
    (asked,) = until(lambda: scene.http.get(f"{BOB}/questions").json()["questions"], "Bob asks")
    assert (asked["question"].strip(), asked["options"]) == ("Which database should we use?", ["Postgres", "SQLite"])
    answering = f"{BOB}/questions/{asked['questionId']}/answer"
    assert problem(scene.http.post(answering, json={"answer": "Oracle"}))[0] == 409
    assert scene.chosen() == []
    assert scene.http.post(answering, json={"answer": "SQLite"}).json() == {"success": True}
    until(lambda: scene.chosen() == ["SQLite"], "the program has it")
    until(lambda: scene.said_over_http() == ["chosen"], "it goes on")
    assert scene.http.get(f"{BOB}/questions").json()["questions"] == []
    told = until(lambda: found if len(found := scene.events("question.*")) == 2 else None, "both are told")
    assert [event["type"] for event in told] == ["question.requested", "question.resolved"]
    assert (told[1]["questionId"], told[1]["answer"]) == (asked["questionId"], "SQLite")
    assert problem(scene.http.post(answering, json={"answer": "SQLite"}))[0] in {404, 409}
