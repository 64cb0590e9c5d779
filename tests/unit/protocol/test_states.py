"""One test a cell: what is listed here happens, what is not is refused."""

from __future__ import annotations

from enum import StrEnum

import pytest

from agent_relay.protocol.states import (
    CLIENT,
    DAEMON,
    ClientEvent,
    ClientState,
    CloseReason,
    DaemonEvent,
    DaemonState,
    IllegalTransition,
    advance,
)

DAEMON_CELLS = {
    ("handshaking", "greeted"): "opening",
    ("handshaking", "refused"): "handshaking",
    ("handshaking", "closed"): "closed",
    ("opening", "opened"): "active",
    ("opening", "refused"): "handshaking",
    ("opening", "closed"): "closed",
    ("active", "closed"): "closed",
}
CLIENT_CELLS = {
    ("disconnected", "start"): "connecting",
    ("disconnected", "stop"): "closed",
    ("connecting", "connected"): "handshaking",
    ("connecting", "lost"): "backoff",
    ("connecting", "stop"): "closed",
    ("handshaking", "welcomed"): "ready",
    ("handshaking", "lost"): "backoff",
    ("handshaking", "gave_up"): "closed",
    ("handshaking", "stop"): "closed",
    ("ready", "lost"): "backoff",
    ("ready", "gave_up"): "closed",
    ("ready", "stop"): "closed",
    ("backoff", "waited"): "connecting",
    ("backoff", "gave_up"): "closed",
    ("backoff", "stop"): "closed",
}


@pytest.mark.parametrize("state", DaemonState)
@pytest.mark.parametrize("event", DaemonEvent)
def test_daemon(state: DaemonState, event: DaemonEvent) -> None:
    if (wanted := DAEMON_CELLS.get((state, event))) is not None:
        assert advance(DAEMON, state, event) is DaemonState(wanted)
    else:
        with pytest.raises(IllegalTransition, match=f"{state} has no transition for {event}"):
            advance(DAEMON, state, event)


@pytest.mark.parametrize("state", ClientState)
@pytest.mark.parametrize("event", ClientEvent)
def test_client(state: ClientState, event: ClientEvent) -> None:
    if (wanted := CLIENT_CELLS.get((state, event))) is not None:
        assert advance(CLIENT, state, event) is ClientState(wanted)
    else:
        with pytest.raises(IllegalTransition, match=f"{state} has no transition for {event}"):
            advance(CLIENT, state, event)


def reachable(cells: dict[tuple[str, str], str], start: str) -> set[str]:
    found = {start}
    while more := {to for (state, _), to in cells.items() if state in found} - found:
        found |= more
    return found


@pytest.mark.parametrize(
    ("states", "cells", "start"), [(DaemonState, DAEMON_CELLS, "handshaking"), (ClientState, CLIENT_CELLS, "disconnected")]
)
def test_every_state_is_reached_and_every_state_can_end(
    states: type[StrEnum], cells: dict[tuple[str, str], str], start: str
) -> None:
    assert reachable(cells, start) == {state.value for state in states}
    for state in states:
        assert "closed" in reachable(cells, state.value)


def test_closing_reasons_of_the_contract() -> None:
    assert {"superseded", "revoked", "shutdown", "handshake_timeout", "slow_consumer"} <= {reason.value for reason in CloseReason}
