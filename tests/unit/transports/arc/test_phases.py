"""The life of a connection over ARC follows its table, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from agent_relay.protocol.arc.codes import CloseCode
from agent_relay.protocol.states import IllegalTransition, advance
from agent_relay.transports.arc.connection import ArcConnection
from agent_relay.transports.arc.phases import PHASES, Phase, PhaseEvent
from agent_relay.transports.arc.settings import ArcSettings
from tests.unit.transports.arc.scene import Scene, Wire, play

CELLS = [
    (Phase.OPENING, PhaseEvent.WELCOMED, Phase.OPEN),
    (Phase.OPENING, PhaseEvent.ENDED, Phase.CLOSING),
    (Phase.OPENING, PhaseEvent.LOST, Phase.GONE),
    (Phase.OPEN, PhaseEvent.ENDED, Phase.CLOSING),
    (Phase.OPEN, PhaseEvent.LOST, Phase.GONE),
    (Phase.CLOSING, PhaseEvent.LOST, Phase.GONE),
]
HAPPEN: dict[PhaseEvent, Callable[[Scene, ArcConnection], None]] = {
    PhaseEvent.WELCOMED: lambda scene, _: scene.harness.store.release(),
    PhaseEvent.ENDED: lambda _, connection: connection.end(CloseCode.SHUTDOWN, "Over."),
    PhaseEvent.LOST: lambda _, connection: connection.connection_lost(None),
}
WAYS: dict[Phase, tuple[PhaseEvent, ...]] = {
    Phase.OPENING: (),
    Phase.OPEN: (PhaseEvent.WELCOMED,),
    Phase.CLOSING: (PhaseEvent.WELCOMED, PhaseEvent.ENDED),
    Phase.GONE: (PhaseEvent.WELCOMED, PhaseEvent.LOST),
}


def test_the_cells_are_the_whole_table() -> None:
    assert {(phase, event, then) for phase, row in PHASES.items() for event, then in row.items()} == set(CELLS)


@pytest.mark.parametrize(("phase", "event", "then"), CELLS)
def test_every_cell(phase: Phase, event: PhaseEvent, then: Phase) -> None:
    async def act(scene: Scene) -> None:
        connection = scene.hub.attach(scene.registrar.records["ann-1"], cast("Any", Wire()), "127.0.0.1")
        scene.harness.store.hold()
        connection.begin()
        for step in WAYS[phase]:
            HAPPEN[step](scene, connection)
            await scene.settle()
        assert connection.phase is phase
        HAPPEN[event](scene, connection)
        await scene.settle()
        assert (connection.phase, connection.is_open) == (then, then is Phase.OPEN)
        assert (connection.closed_with is not None) == (PhaseEvent.ENDED in (*WAYS[phase], event))

    play(act)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", PhaseEvent)
def test_what_the_table_does_not_list_cannot_happen(phase: Phase, event: PhaseEvent) -> None:
    if event in PHASES[phase]:
        return
    with pytest.raises(IllegalTransition):
        advance(PHASES, phase, event)


def test_to_end_one_that_is_over_changes_nothing() -> None:
    async def act(scene: Scene) -> None:
        connection, _ = await scene.connect()
        connection.end(CloseCode.TOKEN, "First.")
        connection.end(CloseCode.SHUTDOWN, "Second.")
        assert (connection.phase, connection.closed_with) == (Phase.CLOSING, CloseCode.TOKEN)
        connection.connection_lost(None)
        connection.end(CloseCode.SHUTDOWN, "Third.")
        assert (connection.phase, connection.closed_with) == (Phase.GONE, CloseCode.TOKEN)

    play(act)


def test_the_core_is_told_how_clients_over_arc_are() -> None:
    settings = ArcSettings(ephemeral=True)
    assert (settings.peer_traits.keeps_offline, settings.name_traits.keeps_offline) == (False, False)
    names, peers = ArcSettings().name_traits, ArcSettings().peer_traits
    assert (names.kind, names.keeps_offline) == ("arc", True)
    assert "agent-relay arc revoke {name}" in names.removal
    assert (peers.dedups, peers.skips_unknown, peers.keeps_offline, peers.has_heartbeat) == (False, True, True, True)
