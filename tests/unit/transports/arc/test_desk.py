"""Registering at the desk: what is allowed holds for those that come at the same moment too."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_relay.transports.arc.desk import Unwelcome
from tests.unit.transports.arc.scene import Scene, play


async def register_all(scene: Scene, names: list[str]) -> list[Any]:
    tasks = [asyncio.create_task(scene.desk.register(name, "10.0.0.1")) for name in names]
    while not all(task.done() for task in tasks):
        await scene.settle()
    return await asyncio.gather(*tasks, return_exceptions=True)


def statuses(answers: list[Any]) -> list[int]:
    return [answer.status if isinstance(answer, Unwelcome) else 200 for answer in answers]


def test_registrations_at_once_are_counted_as_those_one_after_another() -> None:
    async def act(scene: Scene) -> None:
        assert statuses(await register_all(scene, ["-", "ann-1"])) == [400, 409]  # what came to nothing does not count
        answers = await register_all(scene, [f"new-{number}" for number in range(9)])
        assert statuses(answers) == [200] * 5 + [429] * 4

    play(act)


def test_a_token_is_not_renewed_once_it_was_revoked() -> None:
    async def act(scene: Scene) -> None:
        token = (await register_all(scene, ["new-1"]))[0]["token"]
        async with scene.registrar._changing:  # both are let in, and wait for another's change
            tasks = [asyncio.create_task(ask(token, "10.0.0.1")) for ask in (scene.desk.sign_off, scene.desk.refresh)]
            await scene.settle()
        gone, refused = await asyncio.gather(*tasks, return_exceptions=True)
        assert gone == {"agent_id": "new-1", "revoked": True}
        assert isinstance(refused, Unwelcome)
        assert (refused.status, refused.error) == (401, "unauthorized")

    play(act)
