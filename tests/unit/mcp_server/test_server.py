"""A server that is cancelled ends as cancelled, in whatever order the tasks of its package end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from anyio import BrokenResourceError, ClosedResourceError
from mcp.server.lowlevel import Server

from agent_relay.cli.mcp.own_agent import OwnAgent
from agent_relay.mcp import server
from agent_relay.sdk.locate import Place


@contextlib.asynccontextmanager
async def no_streams() -> AsyncIterator[tuple[None, None]]:
    yield None, None


async def cancel_while(monkeypatch: pytest.MonkeyPatch, errors: BaseExceptionGroup[BaseException], *, is_cancelled: bool) -> None:
    """Serves until it is cancelled, or until something else ends it; then the package's tasks fail so."""
    is_running = asyncio.Event()

    async def run(*_: Any) -> None:
        is_running.set()
        if not is_cancelled:
            raise errors
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise errors from None

    monkeypatch.setattr(server, "open_streams", no_streams)
    monkeypatch.setattr(Server, "run", run)
    serving = asyncio.create_task(server.serve(OwnAgent(Place("/nowhere", "p", "/nowhere", "/nowhere", "/nowhere.sock"))))
    await is_running.wait()
    if is_cancelled:
        serving.cancel()
    await serving


def broken_off(*others: Exception) -> BaseExceptionGroup[BaseException]:
    inner = BaseExceptionGroup("inner", [ClosedResourceError(), asyncio.CancelledError()])
    return BaseExceptionGroup("outer", [BrokenResourceError(), inner, *others])


def test_streams_that_close_while_it_is_cancelled_are_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_while(monkeypatch, broken_off(), is_cancelled=True))


def test_any_other_failure_is_told_though_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BaseExceptionGroup, match="outer"):
        asyncio.run(cancel_while(monkeypatch, broken_off(ValueError("odd")), is_cancelled=True))


def test_streams_that_close_by_themselves_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BaseExceptionGroup, match="outer"):
        asyncio.run(cancel_while(monkeypatch, broken_off(), is_cancelled=False))
