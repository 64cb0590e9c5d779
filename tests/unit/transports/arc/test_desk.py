"""Registering at the desk: what is allowed holds for those that come at the same moment too."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agent_relay.protocol.errors import RelayError
from agent_relay.transports.arc.answers import Revoked
from agent_relay.transports.arc.desk import Unwelcome
from agent_relay.transports.arc.registrar import Verdict
from tests.unit.transports.arc.scene import Scene, play


async def register_all(
    scene: Scene, names: list[str], *, invite: str | None = None, bearer: str = "", address: str = "10.0.0.1"
) -> list[Any]:
    tasks = [asyncio.create_task(scene.desk.register(name, invite, address, is_owner=bearer == "owner's")) for name in names]
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
        token = (await register_all(scene, ["new-1"]))[0].token
        async with scene.registrar._changing:  # both are let in, and wait for another's change
            tasks = [asyncio.create_task(ask(token, "10.0.0.1")) for ask in (scene.desk.sign_off, scene.desk.refresh)]
            await scene.settle()
        gone, refused = await asyncio.gather(*tasks, return_exceptions=True)
        assert gone == Revoked("new-1")
        assert isinstance(refused, Unwelcome)
        assert (refused.status, refused.error) == (401, "unauthorized")

    play(act)


def test_the_old_token_is_good_for_a_minute() -> None:
    async def act(scene: Scene) -> None:
        old = (await register_all(scene, ["new-1"]))[0].token
        new = (await scene.desk.refresh(old, "10.0.0.1")).token
        scene.harness.advance(59_999)
        assert scene.registrar.judge(old)[0] is Verdict.REPLACED
        assert scene.desk.authenticate(old, "10.0.0.1", connects=True).agent_id == "new-1"
        scene.harness.advance(1)
        assert scene.registrar.judge(old)[0] is Verdict.EXPIRED
        assert scene.registrar.judge(new)[0] is Verdict.GOOD
        with pytest.raises(Unwelcome, match="expired"):
            scene.desk.authenticate(old, "10.0.0.1")

    play(act)


def test_the_old_token_is_good_for_connecting_alone() -> None:
    async def act(scene: Scene) -> None:
        old = (await register_all(scene, ["new-1"]))[0].token
        await scene.desk.refresh(old, "10.0.0.1")
        for ask in (scene.desk.refresh, scene.desk.sign_off):
            with pytest.raises(Unwelcome, match="replaced") as refused:
                await ask(old, "10.0.0.1")
            assert refused.value.status == 401
        assert scene.registrar.records["new-1"].row.revoked_at is None

    play(act)


def test_a_closed_relay_registers_whom_its_owner_lets_in() -> None:
    async def act(scene: Scene) -> None:
        scene.close_desk()
        assert statuses(await register_all(scene, ["new-1"])) == [401]
        assert statuses(await register_all(scene, ["new-1"], bearer="guess")) == [401]
        assert statuses(await register_all(scene, ["new-1"], bearer="owner's")) == [200]

    play(act)


def test_strangers_at_an_open_relay_do_not_use_up_what_its_owner_may_do() -> None:
    async def act(scene: Scene) -> None:
        names = [f"squat-{number}" for number in range(6)]
        assert statuses(await register_all(scene, names, address="127.0.0.1"))[-1] == 429
        assert statuses(await register_all(scene, ["more-1"], address="127.9.9.9")) == [429]  # the same machine
        assert statuses(await register_all(scene, ["mine-1"], bearer="owner's", address="127.0.0.1")) == [200]

    play(act)


def test_an_invitation_is_good_for_what_it_says() -> None:
    async def act(scene: Scene) -> None:
        scene.close_desk()
        one = (await scene.desk.invite("named-1", 1, 60_000)).invite
        many = (await scene.desk.invite(None, 2, 60_000)).invite
        assert statuses(await register_all(scene, ["other-1"], invite=one)) == [401]
        assert statuses(await register_all(scene, ["named-1"], invite=one)) == [200]
        assert statuses(await register_all(scene, ["named-1"], invite=one)) == [401]
        assert statuses(await register_all(scene, ["many-1", "many-2", "many-3"], invite=many)) == [200, 200, 401]
        assert statuses(await register_all(scene, ["none-1"], invite="inv_guess")) == [401]

    play(act)


def test_a_registration_that_came_to_nothing_costs_no_invitation() -> None:
    async def act(scene: Scene) -> None:
        scene.close_desk()
        invite = (await scene.desk.invite(None, 1, 60_000)).invite
        assert statuses(await register_all(scene, ["ann-1"], invite=invite)) == [409]
        assert statuses(await register_all(scene, ["-"], invite=invite)) == [400]
        assert statuses(await register_all(scene, ["new-1"], invite=invite)) == [200]

    play(act)


def test_an_invitation_ends() -> None:
    async def act(scene: Scene) -> None:
        scene.close_desk()
        made = await scene.desk.invite(None, 5, 60_000)
        assert [one.id for one in scene.desk.list_invitations()] == [made.id]
        assert made.invite not in str(scene.desk.list_invitations())
        scene.harness.advance(60_000)
        assert scene.desk.list_invitations() == []
        assert statuses(await register_all(scene, ["new-1"], invite=made.invite)) == [401]
        other = await scene.desk.invite(None, 5, 60_000)
        await scene.desk.withdraw(other.id)
        assert statuses(await register_all(scene, ["new-1"], invite=other.invite)) == [401]
        with pytest.raises(RelayError):
            await scene.desk.withdraw(other.id)

    play(act)


@pytest.mark.parametrize("agent_id", ["http", "policy", "door", "relay", "human", "cli-root", "cli-"])
def test_reserved_names_are_nobodys(agent_id: str) -> None:
    async def act(scene: Scene) -> None:
        assert statuses(await register_all(scene, [agent_id], bearer="owner's"))[0] in {400, 409}

    play(act)


def test_where_tokens_expire_the_new_one_has_its_whole_time_and_the_old_one_no_more_than_it_had() -> None:
    async def act(scene: Scene) -> None:
        scene.registrar._settings = replace(scene.desk.settings, token_ttl_ms=30_000)
        old = (await register_all(scene, ["new-1"]))[0]
        scene.harness.advance(20_000)
        new = await scene.desk.refresh(old.token, "10.0.0.1")
        assert new.expires_at - old.expires_at == 20_000
        scene.harness.advance(10_000)
        assert scene.registrar.judge(old.token)[0] is Verdict.EXPIRED
        scene.harness.advance(19_999)
        assert scene.registrar.judge(new.token)[0] is Verdict.GOOD
        scene.harness.advance(1)
        assert scene.registrar.judge(new.token)[0] is Verdict.EXPIRED

    play(act)


def test_a_token_expires_by_the_wall_clock_and_limits_do_not_mind_where_that_jumps() -> None:
    async def act(scene: Scene) -> None:
        scene.registrar._settings = replace(scene.desk.settings, token_ttl_ms=60_000)
        token = (await register_all(scene, ["new-1"]))[0].token
        assert [status for status in guess(scene, 11) if status == 429] == [429]
        scene.harness.wall_ms += 3_600_000  # somebody sets the clock: an hour is over, and no minute
        assert scene.registrar.judge(token)[0] is Verdict.EXPIRED
        assert guess(scene, 1) == [429]
        scene.harness.wall_ms -= 7_200_000
        assert scene.registrar.judge(token)[0] is Verdict.GOOD
        assert guess(scene, 1) == [429]
        scene.harness.steady_ms += 60_000
        assert guess(scene, 1) == [401]

    play(act)


def guess(scene: Scene, count: int) -> list[int]:
    found = []
    for _ in range(count):
        with pytest.raises(Unwelcome) as refused:
            scene.desk.authenticate("tok_guess", "10.0.0.9")
        found.append(refused.value.status)
    return found
