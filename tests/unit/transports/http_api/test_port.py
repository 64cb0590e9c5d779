"""Where the server listens: the port that was asked for, or the next free one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from agent_relay.transports.http import port as ports
from agent_relay.transports.http.port import PortTaken, PortUnusable, open_free_port, open_port

HOST = "127.0.0.1"


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        yield other.getsockname()[1]


def number(listener: socket.socket) -> int:
    with listener:
        return int(listener.getsockname()[1])


def test_a_port_that_was_asked_for_is_not_changed(taken: int) -> None:
    with pytest.raises(PortTaken, match=f"Port {taken} on {HOST} is in use; leave out --port"):
        open_port(HOST, taken)
    with pytest.raises(PortUnusable, match="cannot be used"):
        open_port("no.such.host.invalid", 0)


def test_the_preferred_one_goes_first(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    monkeypatch.setattr(ports, "FIRST_PORT", taken)
    free = number(open_port(HOST, 0))
    assert number(open_free_port(HOST, free)) == free


def test_a_taken_one_is_passed_over(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    monkeypatch.setattr(ports, "FIRST_PORT", taken)
    found = number(open_free_port(HOST, taken))
    assert taken < found
    monkeypatch.setattr(ports, "_TRIED", 1)
    assert number(open_free_port(HOST, 0)) not in {0, taken}  # any at all
