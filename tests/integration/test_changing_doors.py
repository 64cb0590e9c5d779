"""One program whose door changes between its starts: every probe fails closed with its reason, and typing takes over."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stage import DEADLINE_S, Stage, until

pytestmark = [pytest.mark.terminals, pytest.mark.timeout(300)]  # six starts, on a machine that may be busy
PROGRAM = Path(__file__).parent / "changing_door.py"
REASONS = {
    "missing method": "answers /question in an unknown way (status 404)",
    "renamed field": "Something unknown answers at opencode's port",
    "other shape": "answers /permission in an unknown way",
    "401": "does not know the password it was started with",
    "hanging": "It is not open yet",
    "nobody": "It is not open yet",
}


def opencode(folder: Path) -> str:
    path = folder / "opencode"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} {folder} "$@"\n')
    path.chmod(0o755)
    return str(path)


def described(stage: Stage, name: str) -> dict[str, Any]:
    agents = json.loads(stage.command("agents", "--json").stdout)["agents"]
    return next((dict(agent) for agent in agents if agent["name"] == name), {})


def test_whatever_its_door_has_become_a_message_is_typed_once_and_the_reason_is_told(stage: Stage) -> None:
    program, given = opencode(stage.folder), stage.folder / "given"
    for number, (shape, reason) in enumerate(REASONS.items()):
        (stage.folder / "shape").write_text(shape)
        given.unlink(missing_ok=True)
        name = f"Bob{number}"
        process = stage.run(["-n", name, "--backend", "pty", "--no-intro", *stage.where, program])
        log = stage.daemon.state_dir / "team" / name / "wrapper.log"
        try:
            until(lambda log=log: log.exists() and "state: idle" in log.read_text(), f"{shape}: it is at its prompt")
            began = time.monotonic()
            with stage.daemon.connect_sync("Carol") as carol:
                carol.send(name, f"at {shape}")
            until(lambda: given.exists() and given.read_text(), f"{shape}: it is typed")
            assert time.monotonic() - began < DEADLINE_S / 2, shape  # 5 s where nothing else runs
            found = until(lambda name=name: described(stage, name).get("unused_doors"), f"{shape}: the reason is told")
            assert [each["door"] for each in found] == ["opencode server"]
            assert reason in found[0]["reason"], shape
            assert described(stage, name)["door"] == "typing"
            stage.settled(name, 1)
            (line,) = given.read_text().splitlines()
            assert line.startswith("Relay message from Carol")
            assert line.endswith(f"at {shape}")
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE_S)
    starts = (stage.folder / "starts").read_text().splitlines()
    assert len(starts) == len(REASONS)
    assert all("--port" in start for start in starts)  # what one start found does not hold for the next
