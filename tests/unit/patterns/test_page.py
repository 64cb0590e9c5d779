"""The program on the page about patterns runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import StandIn

PAGE = (Path(__file__).parents[3] / "docs/patterns.md").read_text("utf-8")


async def review(message: Message) -> None:
    await message.reply("one list" if message.body.startswith("Make one list") else "a review")


def test_the_first_example_runs(daemon: DaemonProcess, capsys: pytest.CaptureFixture[str]) -> None:
    source = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    program: dict[str, Any] = {}
    exec(source.replace("asyncio.run(main())", ""), program)

    def connect(name: str) -> StandIn:
        relay = StandIn(name, daemon)
        relay.parts["claude"] = review
        return relay

    program["RelayClient"] = connect
    asyncio.run(program["main"]())
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == "one list"
    assert re.fullmatch(r"4/4 Worker-4-[0-9a-f]{4} released", shown[-2])
