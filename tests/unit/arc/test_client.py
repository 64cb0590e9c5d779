"""The client against a small relay over real sockets: sending, receiving, commands, and coming back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agent_relay.arc import (
    ArcClient,
    ArcClosed,
    ArcError,
    ArcMessage,
    ArcRefused,
    ArcRejected,
    ArcState,
    ArcTimeout,
    Patience,
    refresh_token,
    register,
    unregister,
)
from tests.arc.running import QUICK, run, until
from tests.arc.small_relay import SmallRelay


@pytest.fixture
def relay() -> Iterator[SmallRelay]:
    with SmallRelay() as running:
        yield running


class Naps:
    """Remembers how long was to be slept, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


async def join(relay: SmallRelay, name: str, **options: Any) -> ArcClient:
    client = ArcClient(relay.url, (await register(relay.url, name)).token, patience=options.pop("patience", QUICK), **options)
    await client.connect()
    return client


def texts(messages: list[ArcMessage]) -> list[Any]:
    return [message.payload for message in messages]


# --- registering --------------------------------------------------------------------------------------------------------


def test_registering_and_giving_up(relay: SmallRelay) -> None:
    async def main() -> None:
        ours = await register(relay.url, "rawk-042")
        assert (ours.agent_id, ours.token in repr(ours)) == ("rawk-042", False)
        assert (await register(relay.url)).agent_id.startswith("agent-")
        with pytest.raises(ArcRefused) as caught:
            await register(relay.url, "rawk-042")
        assert (caught.value.code, caught.value.status) == ("agent_id_taken", 409)
        renewed = await refresh_token(relay.url, ours.token)
        assert renewed.agent_id == "rawk-042"
        assert renewed.token != ours.token
        await unregister(relay.url, renewed.token)
        with pytest.raises(ArcClosed) as refused:
            await ArcClient(relay.url, renewed.token).connect()
        assert (refused.value.code, refused.value.final) == ("unauthorized", True)

    run(main)


def test_a_relay_that_is_not_there_is_said_at_once() -> None:
    async def main() -> None:
        with pytest.raises(ArcError, match="No response"):
            await register("ws://127.0.0.1:1/arc")
        with pytest.raises(ArcClosed, match="failed"):
            await ArcClient("ws://127.0.0.1:1/arc", "tok_x").connect()

    run(main)


# --- sending and receiving ----------------------------------------------------------------------------------------------


def test_messages_go_both_ways_with_everything_in_them(relay: SmallRelay) -> None:
    async def main() -> None:
        alice, bob = await join(relay, "alice"), await join(relay, "bob")
        await alice.send("bob", {"n": 1}, type="note", ref="r-7", colour="blue")
        await alice.broadcast("all")
        first, second = await bob.receive(5), await bob.receive(5)
        assert (first.from_, first.to, first.payload, first.type, first.ref) == ("alice", ("bob",), {"n": 1}, "note", "r-7")
        assert first.fields["colour"] == "blue"
        assert (second.payload, second.is_broadcast) == ("all", True)
        with pytest.raises(ArcTimeout):
            await alice.receive(0.05)  # what she broadcast is not hers to hear
        await alice.close()
        await bob.close()

    run(main)


def test_the_token_is_in_the_header_and_nowhere_else(relay: SmallRelay) -> None:
    async def main() -> None:
        relay.faults.add("no-query-token")
        client = await join(relay, "alice")
        assert client.agent_id == "alice"
        await client.close()

    run(main)


def test_a_loop_over_messages_ends_when_the_client_is_closed(relay: SmallRelay) -> None:
    async def main() -> None:
        alice, bob = await join(relay, "alice"), await join(relay, "bob")
        await alice.send("bob", "one")
        seen = []
        async for message in bob.messages():
            seen.append(message.payload)
            await bob.close()
        assert seen == ["one"]
        assert bob.state is ArcState.CLOSED
        with pytest.raises(ArcError):
            await bob.send("alice", "late")
        await alice.close()

    run(main)


def test_confirmed_means_taken(relay: SmallRelay) -> None:
    async def main() -> None:
        alice, bob = await join(relay, "alice"), await join(relay, "bob")
        id_ = await alice.send("bob", "sure", confirm=True)
        got = await bob.receive(5)
        assert got.id == id_
        with pytest.raises(ArcTimeout):
            await alice.receive(0.05)  # her own copy was the confirmation, not a message
        await alice.close()
        await bob.close()

    run(main)


def test_what_the_relay_refuses_is_raised_where_somebody_waits(relay: SmallRelay) -> None:
    async def main() -> None:
        alice = await join(relay, "alice")
        for confirm in (True, False):
            with pytest.raises(ArcRejected) as caught:
                await alice.send("bob", "x" * 70_000, confirm=confirm)
            assert caught.value.code == "message_too_large"
        assert relay.frames == []  # the welcome said how much is too much
        alice.welcome = None
        with pytest.raises(ArcRejected) as refused:
            await alice.send("bob", "x" * 70_000, confirm=True)
        assert refused.value.code == "message_too_large"
        heard: list[ArcRejected] = []
        alice.on_error = heard.append
        await alice.send("relay", "x", type="dance", ref="mine")
        await alice.ping()
        assert [error.code for error in heard] == ["unknown_type"]
        with pytest.raises(ArcRejected) as unknown:
            await alice.command("dance")
        assert unknown.value.code == "unknown_type"
        await alice.close()

    run(main)


@pytest.mark.parametrize("send", [{"to": []}, {"to": [""]}, {"from": "eve"}, {"payload": float("nan")}, {"payload": object()}])
def test_what_cannot_be_sent_is_said_before_it_is(relay: SmallRelay, send: dict[str, Any]) -> None:
    async def main() -> None:
        alice = await join(relay, "alice")
        fields = {"from": send["from"]} if "from" in send else {}
        with pytest.raises(ArcError):
            await alice.send(send.get("to", "bob"), send.get("payload", "x"), **fields)
        await alice.ping()
        assert [frame.get("type") for frame in relay.frames] == ["ping"]
        await alice.close()

    run(main)


def test_commands(relay: SmallRelay) -> None:
    async def main() -> None:
        alice, bob = await join(relay, "alice"), await join(relay, "bob")
        assert await alice.subscribe("bob", "carol") == ["bob", "carol"]
        assert await alice.unsubscribe("carol") == ["bob"]
        assert await alice.subscriptions() == ["bob"]
        first = await bob.send("alice", "one", confirm=True)
        await bob.send("alice", "two words", confirm=True)
        assert texts(await alice.history()) == ["one", "two words"]
        assert texts(await alice.history(limit=1)) == ["two words"]
        assert texts(await alice.search("words")) == ["two words"]
        assert first is not None
        assert texts(await alice.replay(first)) == ["two words"]
        assert alice.offers("persistence")
        assert not alice.offers("voting")
        await alice.close()
        await bob.close()

    run(main)


def test_a_relay_without_a_welcome_is_one_too() -> None:
    async def main() -> None:
        with SmallRelay(welcomes=False) as relay:
            alice, bob = await join(relay, "alice"), await join(relay, "bob", agent_id="bob")
            with pytest.raises(ArcError, match="agent_id"):
                await alice.send("bob", "x", confirm=True)
            await alice.send("bob", "hello")
            assert (await bob.receive(5)).payload == "hello"
            assert await bob.send("alice", "sure", confirm=True) is not None
            await alice.close()
            await bob.close()

    run(main)


# --- coming back --------------------------------------------------------------------------------------------------------


def test_after_a_loss_it_comes_back_resubscribes_and_misses_nothing(relay: SmallRelay) -> None:
    async def main() -> None:
        alice, bob = await join(relay, "alice"), await join(relay, "bob")
        await alice.subscribe("bob")
        await bob.broadcast(1)
        assert (await alice.receive(5)).payload == 1
        relay.subscriptions.clear()  # a relay that forgets them with the connection
        relay.refuse_next = [503] * 3
        relay.close_peer("alice", 1011)
        await until(lambda: "alice" not in relay.peers)
        await bob.send("alice", 2, confirm=True)  # stored for her
        await bob.broadcast(3)  # missed by her
        await bob.ping()
        await until(lambda: alice.connections == 2)
        await bob.broadcast(4)
        assert [(await alice.receive(5)).payload for _ in range(3)] == [2, 3, 4]
        assert relay.subscriptions["alice"] == {"bob"}
        with pytest.raises(ArcTimeout):
            await alice.receive(0.05)  # nothing came twice
        await alice.close()
        await bob.close()

    run(main)


def test_a_new_client_goes_on_where_the_last_one_was(relay: SmallRelay) -> None:
    async def main() -> None:
        bob = await join(relay, "bob")
        ours = await register(relay.url, "alice")
        async with ArcClient(relay.url, ours.token) as alice:
            await bob.broadcast(1)
            last = (await alice.receive(5)).id
        await bob.broadcast(2)
        await bob.ping()
        async with ArcClient(relay.url, ours.token, since=last) as alice:
            assert (await alice.receive(5)).payload == 2
            assert alice.resume_from == last
        await bob.close()

    run(main)


def test_what_came_live_waits_until_what_was_missed_is_there(relay: SmallRelay) -> None:
    """The connection breaks a second time, before the relay has answered what was missed."""

    async def main() -> None:
        alice, bob = await join(relay, "alice"), await join(relay, "bob")
        await bob.broadcast(1)
        assert (await alice.receive(5)).payload == 1
        relay.refuse_next = [503] * 3
        relay.close_peer("alice", 1011)
        await until(lambda: "alice" not in relay.peers)
        await bob.broadcast(2)
        await bob.ping()
        relay.mute = True
        await until(lambda: "alice" in relay.peers)
        await bob.send("alice", 3)
        await until(lambda: relay.log[-1]["payload"] == 3)
        relay.close_peer("alice", 1011)
        relay.mute = False
        assert [(await alice.receive(5)).payload for _ in range(2)] == [2, 3]
        await alice.close()
        await bob.close()

    run(main)


def test_a_confirmed_message_is_not_sent_twice_where_the_relay_had_taken_it(relay: SmallRelay) -> None:
    async def main() -> None:
        alice, bob = await join(relay, "alice"), await join(relay, "bob")
        await bob.send("alice", "first", confirm=True)
        await alice.receive(5)
        relay.forget_next = 1  # it takes the message and loses the connection before our copy comes
        id_ = await alice.send("bob", "once", confirm=True)
        got = await bob.receive(5)
        assert (got.payload, got.id) == ("once", id_)
        with pytest.raises(ArcTimeout):
            await bob.receive(0.05)
        assert alice.connections == 2
        await alice.close()
        await bob.close()

    run(main)


@pytest.mark.parametrize(("code", "word"), [(4001, "token_expired"), (4000, "superseded")])
def test_these_close_codes_are_final(relay: SmallRelay, code: int, word: str) -> None:
    async def main() -> None:
        alice = await join(relay, "alice")
        relay.close_peer("alice", code)
        with pytest.raises(ArcClosed) as caught:
            async for _ in alice.messages():
                pass
        assert (caught.value.close_code, caught.value.code, alice.connections) == (code, word, 1)
        await alice.close()

    run(main)


@pytest.mark.parametrize(("code", "at_least_s"), [(4029, 10.0), (4008, 1.0), (1001, 0.0)])
def test_these_are_waited_out(relay: SmallRelay, code: int, at_least_s: float) -> None:
    async def main() -> None:
        naps = Naps()
        alice = await join(relay, "alice", patience=Patience(sleep=naps))
        relay.close_peer("alice", code)
        await until(lambda: alice.connections == 2)
        assert len(naps.slept) == 1
        assert at_least_s <= naps.slept[0] <= max(at_least_s, 0.2)
        await alice.close()

    run(main)


def test_the_waits_grow_and_the_relays_advice_counts(relay: SmallRelay) -> None:
    async def main() -> None:
        naps = Naps()
        alice = await join(relay, "alice", patience=Patience(sleep=naps, random=lambda: 0.5))
        relay.refuse_next = [503, 503, 429]
        relay.close_peer("alice", 1011)
        await until(lambda: alice.connections == 2)
        assert naps.slept == [0.1, 0.2, 0.4, 7.0]
        await alice.close()

    run(main)


def test_it_gives_up_after_so_many_attempts(relay: SmallRelay) -> None:
    async def main() -> None:
        alice = await join(relay, "alice", patience=Patience(attempts=2, sleep=Naps()))
        relay.refuse_next = [503] * 9
        relay.close_peer("alice", 1011)
        with pytest.raises(ArcClosed, match="503"):
            await alice.receive(5)
        assert len(relay.refuse_next) == 7
        await alice.close()

    run(main)


def test_reading_stops_while_nobody_takes_the_messages_and_answers_still_come(relay: SmallRelay) -> None:
    async def main() -> None:
        alice, bob = await join(relay, "alice", queue=3), await join(relay, "bob")
        for number in range(200):
            await bob.send("alice", number)
        await bob.ping()
        await alice.ping()
        assert [(await alice.receive(5)).payload for _ in range(200)] == list(range(200))
        await alice.close()
        await bob.close()

    run(main)


def test_a_callback_that_fails_ends_the_client_and_nobody_waits_for_ever(relay: SmallRelay) -> None:
    async def main() -> None:
        alice = await join(relay, "alice")

        def fail(error: ArcRejected) -> None:
            raise ZeroDivisionError

        alice.on_error = fail
        await alice.send("relay", "x", type="dance")
        with pytest.raises(ArcClosed, match="ZeroDivisionError"):
            await alice.receive(5)
        await alice.close()

    run(main)
