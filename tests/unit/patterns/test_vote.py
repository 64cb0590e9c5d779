from __future__ import annotations

import re
from typing import Any

import pytest

from agent_relay import patterns
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import DEADLINE_S, StandIn, play


async def choose(message: Message) -> None:
    """As its role says; one that is asked again says it properly."""
    choice = re.search(r"choose (\w+)", message.body)
    await message.reply(f'{{"choice": "{choice[1]}", "reason": "so"}}' if choice else "No")


def voters(*choices: str) -> list[patterns.Task]:
    return [patterns.Task(f"V{place}", "voter", f"choose {choice}") for place, choice in enumerate(choices)]


@pytest.mark.parametrize(
    ("choices", "rule", "chosen"),
    [
        ("yes yes no", "majority", "yes"),
        ("yes no", "majority", None),
        ("yes yes no no", "majority", None),
        ("yes yes no maybe", "majority", None),
        ("yes yes no maybe", "plurality", "yes"),
        ("yes no maybe", "plurality", None),
        ("no no", "unanimous", "no"),
        ("no no yes", "unanimous", None),
        ("yes yes no", 2, "yes"),
        ("yes no maybe", 2, None),
        ("NO no YES", "majority", "no"),
    ],
)
def test_the_rules(daemon: DaemonProcess, choices: str, rule: Any, chosen: str | None) -> None:
    async def scene(relay: StandIn) -> None:
        relay.parts["voter"] = choose
        found = await patterns.vote(
            relay, question="Merge?", voters=voters(*choices.split()), options=("yes", "no", "maybe"), rule=rule,
            timeout=DEADLINE_S,
        )  # fmt: skip
        assert found.choice == chosen
        assert sum(found.counts.values()) == len(found.ballots) == len(choices.split())
        assert {ballot.reason for ballot in found.ballots} == {"so"}

    play(daemon, scene)


def test_a_voter_that_fails_counts_as_a_voter(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        relay.parts["voter"] = choose
        given = [*voters("yes"), patterns.Task("Bob", "unwilling", "")]
        found = await patterns.vote(relay, question="Merge?", voters=given, timeout=DEADLINE_S)
        assert (found.choice, dict(found.counts), [each.task for each in found.failed]) == (None, {"yes": 1, "no": 0}, ["Bob"])

    play(daemon, scene)


def test_a_plain_word_is_a_vote_and_another_is_asked_about(daemon: DaemonProcess) -> None:
    async def mumble(message: Message) -> None:
        await message.reply(" No " if "was not accepted" in message.body else "perhaps")

    async def scene(relay: StandIn) -> None:
        relay.parts["mumbler"] = mumble
        found = await patterns.vote(relay, question="Merge?", voters=[patterns.Task("Ann", "mumbler", "")], timeout=DEADLINE_S)
        assert (found.choice, len(relay.started)) == ("no", 1)

    play(daemon, scene)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"options": ["yes"]}, "at least two different options"),
        ({"options": ["yes", "YES"]}, "at least two different options"),
        ({"rule": 3}, "number from 1 to the number of voters"),
        ({"rule": "most"}, "`rule` must be"),
        ({"voters": [patterns.Task("A", "voter", ""), patterns.Task("a", "voter", "")]}, "a name of its own"),
    ],
)
def test_what_is_no_vote_is_refused(daemon: DaemonProcess, more: dict[str, Any], reason: str) -> None:
    async def scene(relay: StandIn) -> None:
        with pytest.raises(RelayError, match=reason):
            await patterns.vote(relay, **{"question": "Merge?", "voters": voters("yes", "no"), **more})

    play(daemon, scene)
