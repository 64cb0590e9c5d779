"""Runs the demonstration from its first line to its exit status, and cleans up however it ends."""

from __future__ import annotations

import asyncio
import dataclasses
import signal

from agent_relay.cli.demo.ledger import Verdict
from agent_relay.cli.demo.script import Script
from agent_relay.cli.demo.stage import Stage
from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.failures import FAILED, OK
from agent_relay.cli.screen import Screen

_TERMINATED = 143  # what shells report for a program that SIGTERM ended


def run_demo(socket: str | None, state_dir: str | None, *, fast: bool, as_json: bool) -> int:
    screen = Screen()
    transcript = Transcript(screen, silent=as_json)
    stage = Stage(socket, state_dir)
    try:
        verdict = asyncio.run(_play(stage, transcript, fast=fast))
    except asyncio.CancelledError:
        return _TERMINATED
    finally:
        stage.close()
    transcript.summary(verdict)
    if as_json:
        screen.json({"holds": verdict.holds, **dataclasses.asdict(verdict)})
    return OK if verdict.holds else FAILED


async def _play(stage: Stage, transcript: Transcript, *, fast: bool) -> Verdict:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    script = Script(stage, transcript, fast=fast)
    await script.play()
    return script.ledger.judge()
