"""The thread under the blocking twin: work goes in, results come out, and the end leaves nobody waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.loop_thread import LoopThread


async def name_of_thread() -> str:
    return threading.current_thread().name


def test_work_runs_on_the_loop_and_its_result_and_error_come_back() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    thread = LoopThread()
    thread.start()
    assert thread.run(name_of_thread()) == "agent-relay"
    with pytest.raises(ZeroDivisionError):
        thread.run(fail())
    thread.stop()


def test_before_the_start_and_after_the_end_work_is_refused() -> None:
    thread = LoopThread()
    with pytest.raises(ConnectionLost):
        thread.run(name_of_thread())
    thread.start()
    with pytest.raises(ConnectionLost, match="once"):
        thread.start()
    thread.stop()
    thread.stop()
    with pytest.raises(ConnectionLost):
        thread.run(name_of_thread())
    thread.call(print, "nobody does this")


def test_the_end_frees_whoever_waits() -> None:
    thread = LoopThread()
    thread.start()
    begun = threading.Event()
    raised: list[BaseException] = []

    async def wait_for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait() -> None:
        try:
            thread.run(wait_for_ever())
        except RelayError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    begun.wait(5)
    thread.stop()
    waiting.join(5)
    assert [type(error) for error in raised] == [ConnectionLost]


def test_the_loops_own_thread_cannot_wait_for_itself() -> None:
    thread = LoopThread()
    thread.start()

    async def call_back() -> str:
        return thread.run(name_of_thread())

    with pytest.raises(RelayError, match="another thread"):
        thread.run(call_back())
    thread.stop()
