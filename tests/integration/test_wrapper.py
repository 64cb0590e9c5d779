"""Agents under the relay talk, and are heard once: on the screen, or in a session file of their own."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.protocol.errors import RelayError
from tests.integration.stage import BACKENDS, Stage, until

pytestmark = pytest.mark.terminals


# --- talking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_question_from_outside_is_answered_by_the_agent(stage: Stage, backend: str) -> None:
    turns = [{"when": r"from (\S+) \[\w+\].*: ready\?", "busy_ms": 50, "say": ["Yes I am.", r"->relay:\1 quite ready"]}]
    bob = stage.start("Bob", backend, turns=turns)

    async def ask() -> str:
        async with stage.daemon.connect("Carol") as carol:
            return (await carol.request("Bob", "ready?", timeout=30)).body

    assert asyncio.run(ask()) == "quite ready"
    assert "Carol is waiting for your answer" in bob.submitted[0]


def test_the_agent_is_introduced_once_before_its_first_message(stage: Stage) -> None:
    bob = stage.start("Bob", "pty", intro=True, turns=[{"when": "Relay notice", "say": [r"as told: ->relay:AgentName text"]}])
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(lambda: len(bob.submitted) == 2)
    assert "you are Bob" in bob.submitted[0]
    assert bob.messages == ["hello"]
    stage.settled("Bob", 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_unknown_recipient_is_told_to_the_agent(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, turns=[{"when": "go", "busy_ms": 50, "say": ["->relay:Karol hi"]}])
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "go")
        notice = until(lambda: [text for text in bob.submitted if text.startswith("Relay notice")])
    assert "Your message to Karol was not sent." in notice[0]
    assert "Did you mean Carol?" in notice[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_others_see_what_it_does_and_how_it_was_given_a_message(stage: Stage, backend: str) -> None:
    dialog = {"question": "Do you want to run rm -rf build?", "close_ms": 2_500}
    bob = stage.start("Bob", backend, turns=[{"when": "clean", "busy_ms": 2_000, "dialog": dialog, "say": ["done"]}])
    with stage.daemon.connect_sync("Carol") as carol:

        def state() -> str | None:
            found = carol.agents().find("Bob")
            return found.state if found is not None else None

        until(lambda: state() == "idle")
        (delivered,) = carol.send("Bob", "clean up").delivered(timeout=40)
        assert (delivered.by, delivered.door) == ("Bob", "typing")
        assert delivered.evidence in {"composer", "busy"}
        for expected in ("working", "waiting", "idle"):
            until(lambda expected=expected: state() == expected, expected)
        bob.process.terminate()
        bob.wait()
        until(lambda: state() in {None, "offline"})


# --- the session file ---------------------------------------------------------------------------------------------

# Looks like Claude Code as far as its profile looks, renders markdown away, and keeps a session file as it does.
RENDERING = r"""
import json, os, re, sys, time, tty, uuid
home, record = os.environ["CLAUDE_CONFIG_DIR"], sys.argv[1]
folder = os.path.join(home, "projects", re.sub(r"[^A-Za-z0-9]", "-", os.getcwd()))
os.makedirs(folder, exist_ok=True)
session = str(uuid.uuid4())
rule, shown = "\u2500" * 60, []

def keep(kind, text):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".%03dZ" % (time.time() % 1 * 1000)
    line = {"type": kind, "uuid": str(uuid.uuid4()), "sessionId": session, "cwd": os.getcwd(), "timestamp": stamp,
            "message": {"role": kind, "content": [{"type": "text", "text": text}]}}
    with open(os.path.join(folder, session + ".jsonl"), "a") as file:
        file.write(json.dumps(line) + "\n")

def draw(draft, busy=""):
    rows = [*shown[-25:], "", *([busy, ""] if busy else []), rule, "\u276f\u00a0" + draft.split("\n")[0][:90], rule]
    os.write(1, ("\x1b[H\x1b[J" + "\r\n".join(rows)).encode())

tty.setraw(0)
os.write(1, b"\x1b[?2004h")
draft, pasting = "", False
draw(draft)
open(record, "a").write(json.dumps({"event": "started", "mode": "prompt"}) + "\n")
while data := os.read(0, 65536):
    for token in re.findall(rb"\x1b\[20[01]~|\r|[^\r\x1b]+", data):
        if token in (b"\x1b[200~", b"\x1b[201~"):
            pasting = token == b"\x1b[200~"
        elif token == b"\r" and not pasting:
            open(record, "a").write(json.dumps({"event": "submitted", "mode": "prompt", "text": draft}) + "\n")
            keep("user", draft)
            shown += ["\u276f " + draft.split("\n")[0][:90], ""]
            asked = re.search(r"from (\w+) \[\w+\]: tell me", draft)
            draft = ""
            draw(draft, "\u273d Pondering\u2026 (1s)")
            time.sleep(0.3)
            answer = "Sure.\n\n->relay:%s <<<\nline *one*\n  `two`\n>>>" % asked[1] if asked else "Fine."
            keep("assistant", answer)
            rows = re.sub(r"[*`]|\n>>>", "", answer).split("\n")
            shown += ["\u25cf " + rows[0], *("  " + row for row in rows[1:]), ""]
        else:
            draft += token.decode().replace("\r", "\n") if token != b"\r" else "\n"
        draw(draft)
"""


@pytest.mark.parametrize("intro", [True, False])
def test_two_agents_of_one_cli_in_one_folder_are_heard_by_their_own_session_files(stage: Stage, intro: bool) -> None:
    stage.environ["CLAUDE_CONFIG_DIR"] = str(stage.folder / "claude")
    program = stage.folder / "rendering.py"
    program.write_text(RENDERING, "utf-8")
    bob, dave = (
        stage.start(
            name, "tmux", "--cli", "claude", intro=intro, program=["python3", str(program), str(stage.folder / f"{name}.jsonl")]
        )
        for name in ("Bob", "Dave")
    )
    with stage.daemon.connect_sync("Carol") as carol:
        for name in ("Bob", "Dave", "Bob"):
            carol.send(name, "tell me")
            message = carol.receive(timeout=30)
            assert (message.from_, message.body) == (name, "line *one*\n  `two`")
            message.ack()
        with pytest.raises(RelayError, match="No message came"):
            carol.receive(timeout=5)  # longer than the screen waits for the session file
    stage.settled("Bob", 2)
    assert "transcript" in bob.log
    assert (len(bob.messages), len(dave.messages)) == (2, 1)
