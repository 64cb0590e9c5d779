"""Names: who held one keeps it, and a shell in an agent's terminal speaks as that agent alone."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.stage import BACKENDS, Stage, until
from tests.security.inside import Inside
from tests.security.test_agents import RAW

pytestmark = pytest.mark.terminals


def hello(name: str, **more: object) -> str:
    return json.dumps({"agent": name, "version": 2, "capabilities": {"ack": True}, **more})


def end(agent: Inside) -> None:
    agent.agent.process.send_signal(signal.SIGTERM)
    agent.agent.wait()


def test_the_name_and_the_mail_of_an_agent_that_is_away_are_for_nobody_else(stage: Stage) -> None:
    bob, eve = Inside(stage, "Bob", "pty"), Inside(stage, "Eve", "pty")
    end(bob)
    assert stage.command("send", "Bob", "for Bob alone").returncode == 0
    raw = [sys.executable, "-I", "-c", RAW, stage.daemon.socket, "-", "{}"]
    outside = subprocess.run([*raw, hello("bob")], capture_output=True, text=True, check=True).stdout  # no agent's, and no token
    assert json.loads(outside)["details"]["reason"] == "name_owned"
    for greeting in (hello("Bob"), hello("Bob", capabilities={"control": True}), hello("Somebody")):
        for prefix in ("", "env -i", "setsid"):
            said = json.loads(eve.python(RAW, stage.daemon.socket, "-", "{}", greeting, prefix=prefix).text)
            assert (said["type"], said["details"]["reason"]) == ("ERROR", "inside_agent"), said
    wraps = f"{sys.executable} -P -m agent_relay wrap -n Mallory --backend pty {' '.join(stage.where)} /bin/cat"
    for prefix in ("", "env -i"):
        for words in (("inbox", "--as", "Bob"), ("send", "Carol", "hi", "--from", "Bob")):
            assert "from inside Eve's terminal" in eve.relay(*words, prefix=prefix).text, words
        assert "from inside Eve's terminal" in eve.shell(f"{prefix} {wraps}").text
    assert stage.owed("Bob") == ["for Bob alone"]
    read = stage.command("inbox", "--as", "Bob")  # the owner may
    assert "for Bob alone" in read.stdout


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_owner_wraps_it_again_under_the_same_name(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend)
    bob.process.kill()
    bob.process.wait()
    stage.daemon.kill()
    stage.daemon.start()
    assert stage.command("send", "Bob", "welcome back").returncode == 0
    again = stage.start("Bob", backend)
    until(lambda: "welcome back" in again.messages, "Bob got it")


def test_nobody_speaks_through_anothers_outbox(stage: Stage) -> None:
    alice, eve = stage.start("Alice", "pty"), Inside(stage, "Eve", "pty")
    with stage.daemon.connect_sync("Carol") as carol:
        for number, session in enumerate(("", "SESSION: $AGENT_RELAY_TOKEN\\n", "SESSION: ses_1\\n")):
            eve.shell(f'printf "TO: Carol\\n{session}\\nI am Alice\\n" > {alice.outbox}/note{number}')
            error = alice.outbox / f"note{number}.error"
            until(error.exists, "it is refused")
            assert "CODE: PERMISSION_DENIED" in error.read_text()
        stage.command("send", "Carol", "the end")
        assert carol.receive(timeout=60).body == "the end"


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_agent_is_known_to_a_daemon_that_has_just_started(stage: Stage, backend: str) -> None:
    """Before its wrapper is back: here it never comes."""
    bob = Inside(stage, "Bob", backend)
    os.kill(bob.agent.process.pid, signal.SIGSTOP)
    try:
        stage.daemon.kill()
        stage.daemon.start()
        said = bob.python(RAW, stage.daemon.socket, "-", "{}", hello("Somebody"), prefix="env -i setsid")
        assert json.loads(said.text)["details"] == {"reason": "inside_agent", "agent": "Bob", "right": "names"}
    finally:
        os.kill(bob.agent.process.pid, signal.SIGCONT)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_token_of_the_api_is_in_no_environment_that_an_agent_can_look_into(tmp_path: Path, backend: str) -> None:
    secret = f"owner-{secrets.token_hex(16)}"  # its own: the same test may run beside this one
    stage = Stage(tmp_path)
    try:
        stage.daemon.kill()
        stage.daemon.environ["AGENT_RELAY_API_TOKEN"] = secret
        stage.daemon.start()
        assert stage.daemon.api_token == secret
        stage.environ["AGENT_RELAY_API_TOKEN"] = secret
        bob = Inside(stage, "Bob", backend)
        own, daemon = os.getpid(), stage.daemon.pid
        assert secret not in bob.shell("env").text
        look = f"tr '\\0' '\\n' < $p/environ | grep -q {secret} && echo $p"
        looked = bob.shell(f"for p in /proc/[0-9]*; do {look}; done 2>/dev/null; true")
        found = set(looked.text.split()) - {f"/proc/{own}"}
        assert found == set(), (found, daemon)
    finally:
        stage.close()
