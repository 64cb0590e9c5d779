"""Joining under a name, against a real daemon: the one that was asked for, or one that nobody has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import islice

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, fold_name
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import DaemonNotRunning
from agent_relay.terminal.agent import registration as joining
from agent_relay.terminal.agent.registration import NAMES, RECONNECT, free_names, is_name_in_use, join
from agent_relay.testing.daemon import DaemonProcess


def play(scene: Callable[[Callable[[str], RelayClient]], Awaitable[None]]) -> None:
    with DaemonProcess() as daemon:

        async def run() -> None:
            async with asyncio.timeout(120):
                await scene(lambda name: daemon.connect(name, reconnect_attempts=0))

        asyncio.run(run())


def test_a_name_that_was_asked_for_is_that_name_or_a_refusal() -> None:
    async def scene(make: Callable[[str], RelayClient]) -> None:
        bob = await join(make, "Bob", ["Bob"])  # known is not connected
        try:
            assert bob.name == "Bob"
            with pytest.raises(RelayError) as refused:
                await join(make, "bob", [])
            assert is_name_in_use(refused.value)
        finally:
            await bob.close()

    play(scene)


def test_a_name_that_somebody_took_meanwhile_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "NAMES", ("Ada", "Alan"))

    async def scene(make: Callable[[str], RelayClient]) -> None:
        clients = [await join(make, None, []) for _ in range(5)]  # nobody is known, everybody is in the way
        names = [client.name for client in clients]
        assert set(names[:2]) == {"Ada", "Alan"}
        assert set(names[2:4]) == {"Ada2", "Alan2"}
        assert names[4] in {"Ada3", "Alan3"}
        for client in clients:
            await client.close()

    play(scene)


def test_another_trouble_than_the_name_is_raised_at_once() -> None:
    tried = []

    def make(name: str) -> RelayClient:
        tried.append(name)
        return RelayClient(name, socket="/nonexistent/relay.sock", reconnect_attempts=0)

    for wanted in (None, "Bob"):
        with pytest.raises(DaemonNotRunning):
            asyncio.run(join(make, wanted, []))
    assert len(tried) == 2


def test_free_names_are_names_without_end_none_twice_and_none_known() -> None:
    known = [NAMES[0].upper(), f"{NAMES[1].lower()}2", "Somebody"]
    names = list(islice(free_names(known, random.Random(7)), 5 * len(NAMES)))
    for name in names:
        check_agent_name(name)
    folded = [fold_name(name) for name in names]
    assert len(set(folded)) == len(folded)
    assert not set(folded) & {fold_name(name) for name in known}
    plain = len(NAMES) - 1
    assert set(names[:plain]) == set(NAMES[1:])  # all without a number come first
    assert all(name[-1].isdigit() for name in names[plain:])


def test_agents_started_together_try_different_names() -> None:
    assert len({next(free_names([])) for _ in range(50)}) > 5


def test_only_a_name_in_use_is_a_name_in_use() -> None:
    assert is_name_in_use(RelayError(ErrorCode.PERMISSION_DENIED, "x", reason="name_in_use"))
    assert not is_name_in_use(RelayError(ErrorCode.PERMISSION_DENIED, "x"))
    assert not is_name_in_use(RelayError(ErrorCode.INVALID_TARGET, "x", reason="name_in_use"))


def test_a_daemon_that_was_restarted_is_found_again_soon() -> None:
    assert max(RECONNECT.policy.delay_ms(attempt, 1.0) for attempt in range(1, 30)) <= 2_300


def test_free_names_are_names_and_never_end() -> None:
    for name in NAMES:
        check_agent_name(name)
    assert len({name.lower() for name in NAMES}) == len(NAMES)
    names = free_names([name.upper() for name in NAMES[1:]], random.Random(1))
    assert next(names) == NAMES[0]
    assert next(names) in {f"{name}2" for name in NAMES}
