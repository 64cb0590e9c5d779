"""Who tells an agent what the relay is: a door that says so, else it is typed, also where that door does not open."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.terminal.doors.door import DoorShut, Probe
from tests.unit.terminal.delivery.test_deliverer import ScriptedDoor, Stage, play


class Introducing(ScriptedDoor):
    async def open(self) -> Probe:
        return Probe("1.0", introduces=True)


class Shut(Introducing):
    async def open(self) -> Probe:
        raise DoorShut("It runs no hooks.")


@pytest.mark.parametrize(("door", "is_typed"), [(Introducing, False), (Shut, True), (ScriptedDoor, True)])
def test_it_is_typed_unless_the_door_does_it(tmp_path: Path, door: type[ScriptedDoor], is_typed: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.is_idle = True
        stage.deliverer.introduce()
        stage.put("hello")
        await stage.until(lambda: stage.daemon.of("ack") == ["hello"])

    stage = play(tmp_path, scene, door(can_start_turns=False))
    assert any("you are Bob" in text for text in stage.hands.typed) is is_typed
