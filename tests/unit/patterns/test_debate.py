from __future__ import annotations

import pytest

from agent_relay import patterns
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import DEADLINE_S, StandIn, play, refuse

SIDES = [patterns.Task("Tabs", "speaker", "tabs"), patterns.Task("Spaces", "speaker", "spaces")]
JUDGE = patterns.Task("Judge", "judge", "Judge by clarity.")


async def speak(message: Message) -> None:
    rounds = message.body.count("Round ")
    await message.reply(f"I have heard {rounds} statements")


async def judge(message: Message) -> None:
    rounds = message.body.count("Round ")
    await message.reply(f'{{"winner": "spaces", "verdict": "{rounds} statements"}}')


def test_sides_speak_in_rounds_and_a_judge_decides(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        relay.parts |= {"speaker": speak, "judge": judge}
        found = await patterns.debate(relay, question="Tabs or spaces?", sides=SIDES, judge=JUDGE, rounds=2, timeout=DEADLINE_S)
        assert (found.winner, found.verdict, found.failed) == ("Spaces", "4 statements", ())
        assert [(each.round, each.side, each.text) for each in found.statements] == [
            (1, "Tabs", "I have heard 0 statements"),
            (1, "Spaces", "I have heard 0 statements"),
            (2, "Tabs", "I have heard 2 statements"),
            (2, "Spaces", "I have heard 2 statements"),
        ]

    play(daemon, scene)


def test_a_side_that_fails_says_nothing(daemon: DaemonProcess) -> None:
    async def moody(message: Message) -> None:
        await (refuse if "you are Tabs" in message.body else speak)(message)

    async def scene(relay: StandIn) -> None:
        relay.parts |= {"speaker": moody, "judge": judge}
        found = await patterns.debate(relay, question="?", sides=SIDES, judge=JUDGE, rounds=1, timeout=DEADLINE_S)
        assert [each.side for each in found.statements] == ["Spaces"]
        assert [each.task for each in found.failed] == ["Tabs"]

    play(daemon, scene)


def test_without_a_verdict_what_was_said_is_kept(daemon: DaemonProcess) -> None:
    async def rave(message: Message) -> None:
        await message.reply('{"winner": "Nobody", "verdict": "x"}')

    async def scene(relay: StandIn) -> None:
        relay.parts |= {"speaker": speak, "judge": rave}
        with pytest.raises(patterns.DebateFailed, match="The winner must be null or one of Tabs, Spaces") as failed:
            await patterns.debate(relay, question="?", sides=SIDES, judge=JUDGE, rounds=1, retries=0, timeout=DEADLINE_S)
        assert len(failed.value.statements) == 2

    play(daemon, scene)


def test_one_side_is_no_debate(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        with pytest.raises(RelayError, match="at least two sides"):
            await patterns.debate(relay, question="?", sides=SIDES[:1], judge=JUDGE)
        with pytest.raises(RelayError, match="a name of its own"):
            await patterns.debate(relay, question="?", sides=[*SIDES, SIDES[0]], judge=JUDGE)

    play(daemon, scene)
