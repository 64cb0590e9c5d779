"""A connection's life follows the table, and nothing is said to one that is over."""

from __future__ import annotations

import pytest

from agent_relay.core.context import Context
from agent_relay.core.limits import Limits
from agent_relay.core.peer import PACE, Pace, PaceEvent, Peer
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.states import DaemonEvent, IllegalTransition
from tests.support.harness import FixedEntropy, HarnessConnection, RecordingLog, RelayHarness


@pytest.fixture
def connection() -> HarnessConnection:
    return HarnessConnection()


@pytest.fixture
def peer(connection: HarnessConnection) -> Peer:
    return Peer(Context(Limits(), FixedEntropy(), RecordingLog(), 0, 1, 2), connection, 1_000)


def test_a_life_from_handshake_to_end(peer: Peer) -> None:
    states = []
    for event in (DaemonEvent.GREETED, DaemonEvent.REFUSED, DaemonEvent.GREETED, DaemonEvent.OPENED, DaemonEvent.CLOSED):
        peer.advance(event)
        states.append((peer.state.value, peer.active, peer.closed))
    assert states == [
        ("opening", False, False),
        ("handshaking", False, False),
        ("opening", False, False),
        ("active", True, False),
        ("closed", False, True),
    ]
    with pytest.raises(IllegalTransition):
        peer.advance(DaemonEvent.CLOSED)


@pytest.mark.parametrize(("version", "details"), [(1, {"field": "to", "v1_code": "BAD_REQUEST"}), (2, {"field": "to"})])
def test_an_error_speaks_the_version_of_its_reader(
    peer: Peer, connection: HarnessConnection, version: int, details: dict[str, str]
) -> None:
    peer.version = version
    peer.say_error(RelayError(ErrorCode.INVALID_FORMAT, "No.", field="to"), "r1")
    peer.say_nack(RelayError(ErrorCode.INVALID_FORMAT, "No.", field="to"), "n1", to="Bob")
    error, nack = connection.frames
    assert (error["v"], error["payload"]["reply_to"], error["payload"]["fatal"]) == (version, "r1", False)
    assert error["payload"]["details"] == nack["payload"]["details"] == details
    assert (nack["payload"]["nack_id"], nack["payload"]["to"]) == ("n1", "Bob")


def test_nothing_is_said_to_a_connection_that_is_over(peer: Peer, connection: HarnessConnection) -> None:
    peer.advance(DaemonEvent.CLOSED)
    peer.say("PONG", {})
    assert not connection.frames


@pytest.mark.parametrize("leaves", ["says BYE", "drops"])
def test_an_answer_that_comes_after_its_asker_left_is_dropped(leaves: str) -> None:
    relay = RelayHarness()
    alice = relay.connect("Alice")
    alice.send("Alice", id="m")
    alice.take()
    relay.store.hold()
    alice.say("HISTORY", {})
    alice.say("HISTORY", {"view": "dead_letters"})
    alice.say("SUBSCRIBE", {"topic": "t"})
    alice.send("Alice")
    alice.send("Alice", id="m")
    if leaves == "drops":
        alice.drop()
    else:
        alice.say("BYE", {"reason": "done"})
    relay.store.release()
    relay.settle()
    assert not alice.frames


# --- its pace --------------------------------------------------------------------------------------------------------


def after(*events: PaceEvent) -> Pace:
    peer = Peer(Context(Limits(), FixedEntropy(), RecordingLog(), 0, 1, 2), HarnessConnection(), 1_000)
    for event in events:
        peer.set_pace(event)
        assert peer.fast == (peer.pace is Pace.FAST)
    return peer.pace


WAYS: dict[Pace, tuple[PaceEvent, ...]] = {
    Pace.CHECKED: (),
    Pace.FAST: (PaceEvent.HEARD,),
    Pace.STOPPING: (PaceEvent.STOPPED,),
}
CELLS = [
    (Pace.CHECKED, PaceEvent.HEARD, Pace.FAST),
    (Pace.CHECKED, PaceEvent.CHANGED, Pace.CHECKED),
    (Pace.CHECKED, PaceEvent.STOPPED, Pace.STOPPING),
    (Pace.FAST, PaceEvent.HEARD, Pace.FAST),
    (Pace.FAST, PaceEvent.CHANGED, Pace.CHECKED),
    (Pace.FAST, PaceEvent.STOPPED, Pace.STOPPING),
    (Pace.STOPPING, PaceEvent.HEARD, Pace.STOPPING),
    (Pace.STOPPING, PaceEvent.CHANGED, Pace.STOPPING),
    (Pace.STOPPING, PaceEvent.STOPPED, Pace.STOPPING),
]


@pytest.mark.parametrize(("pace", "event", "then"), CELLS)
def test_every_cell_of_the_table_of_paces(pace: Pace, event: PaceEvent, then: Pace) -> None:
    assert after(*WAYS[pace]) is pace
    assert after(*WAYS[pace], event) is then


def test_the_cells_are_the_whole_table() -> None:
    assert {(pace, event) for pace, event, _ in CELLS} == {(pace, event) for pace in Pace for event in PaceEvent}
    assert {(pace, event, then) for pace, row in PACE.items() for event, then in row.items()} == set(CELLS)


def test_a_connection_that_comes_while_the_daemon_stops_is_never_fast() -> None:
    context = Context(Limits(), FixedEntropy(), RecordingLog(), 0, 1, 2)
    context.stopping = True
    peer = Peer(context, HarnessConnection(), 1_000)
    peer.set_pace(PaceEvent.HEARD)
    assert not peer.fast
