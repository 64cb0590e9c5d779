"""SEND and its receipts: what is waited for, what is sent again, what is told."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.states import ClientState
from agent_relay.sdk import outbox
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.errors import ConnectionLost, TimedOut
from tests.unit.sdk.scripted import Naps, connected, until


def test_send_returns_when_it_is_stored_and_says_to_whom() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sending = asyncio.create_task(
                client.send(
                    ["Bob", "Carol"], "hello", topic="code.x", kind="action", thread="t1", data={"n": 1}, priority=2, ttl_ms=9
                )
            )
            send = await line.hear("SEND")
            assert (send["to"], send["topic"]) == (["Bob", "Carol"], "code.x")
            assert send["payload"] == {"body": "hello", "kind": "action", "thread": "t1", "data": {"n": 1}}
            assert send["payload_meta"] == {"requires_ack": True, "priority": 2, "ttl_ms": 9}
            assert not sending.done()
            line.store(send, "msg_7", recipients=2, queued=1, skipped=["Dave"])
            receipt = await sending
            assert (receipt.message_id, receipt.recipients, receipt.queued, receipt.skipped) == ("msg_7", 2, 1, ["Dave"])
            assert receipt.duplicate is False

    asyncio.run(main())


def test_delivered_waits_for_every_recipient() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sending = asyncio.create_task(client.send("*", "hello"))
            send = await line.hear("SEND")
            line.store(send, recipients=2)
            receipt = await sending
            with pytest.raises(TimedOut, match="2 of 2"):
                await receipt.delivered(timeout=0.01)
            waiting = asyncio.create_task(receipt.delivered())
            line.acknowledge(send, "Bob", 4, response="OK", responseData={"a": 1})
            line.acknowledge(send, "Bob", 4)
            await until(lambda: line.silent)
            assert not waiting.done()
            line.acknowledge(send, "Carol", 9)
            bob, carol = await waiting
            assert (bob.by, bob.seq, bob.response, bob.data) == ("Bob", 4, "OK", {"a": 1})
            assert (carol.by, carol.seq) == ("Carol", 9)
            assert await receipt.delivered() == [bob, carol]

    asyncio.run(main())


def test_nobody_there_is_delivered_at_once() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sending = asyncio.create_task(client.publish("code.x", "hello"))
            send = await line.hear("SEND")
            assert "to" not in send
            line.store(send, recipients=0)
            assert await (await sending).delivered() == []

    asyncio.run(main())


def test_fire_and_forget_asks_for_no_receipt_and_says_so() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sending = asyncio.create_task(client.send("Bob", "hello", requires_ack=False))
            send = await line.hear("SEND")
            assert "requires_ack" not in send.get("payload_meta", {})
            line.store(send)
            with pytest.raises(RelayError, match="requires_ack=False"):
                await (await sending).delivered()

    asyncio.run(main())


def test_a_refusal_is_raised_with_everything_it_said() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sending = asyncio.create_task(client.send("Bbo", "hello"))
            send = await line.hear("SEND")
            line.say(
                "NACK",
                {"nack_id": send["id"], "code": "AGENT_NOT_FOUND", "message": "No Bbo.", "details": {"did_you_mean": ["Bob"]}},
            )
            with pytest.raises(RelayError, match="No Bbo") as caught:
                await sending
            assert (caught.value.code, caught.value.details) == (ErrorCode.AGENT_NOT_FOUND, {"did_you_mean": ["Bob"]})

    asyncio.run(main())


@pytest.mark.parametrize("code", ["REJECTED", "DELIVERY_TIMEOUT"])
def test_a_stored_message_that_fails_later_fails_its_delivery_only(code: str) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sending = asyncio.create_task(client.send("Bob", "hello"))
            send = await line.hear("SEND")
            line.store(send)
            receipt = await sending
            line.say("NACK", {"nack_id": send["id"], "code": code, "message": "No.", "message_id": "msg_1", "to": "Bob"})
            with pytest.raises(RelayError) as caught:
                await receipt.delivered()
            assert caught.value.code is ErrorCode(code)
            assert (caught.value.details["to"], caught.value.details["message_id"]) == ("Bob", "msg_1")
            assert isinstance(caught.value, TimeoutError) is (code == "DELIVERY_TIMEOUT")

    asyncio.run(main())


def test_unanswered_sends_are_sent_again_in_order_and_before_newer_ones() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            sending = [asyncio.create_task(client.send("Bob", f"m{n}")) for n in range(5)]
            first = [await line.hear("SEND") for _ in range(5)]
            line.store(first[1], "msg_b")
            await sending[1]
            line.hang_up()
            await until(lambda: client.state is not ClientState.READY)
            newer = asyncio.create_task(client.send("Bob", "newer"))
            back = await daemon.accept()
            await back.welcome()
            again = [await back.hear("SEND") for _ in range(5)]
            assert [send["payload"]["body"] for send in again] == ["m0", "m2", "m3", "m4", "newer"]
            assert [send["id"] for send in again[:4]] == [first[n]["id"] for n in (0, 2, 3, 4)]
            for send in again:
                back.store(send, duplicate=True)
            await asyncio.gather(newer, *sending)

    asyncio.run(main())


def test_many_sends_of_one_turn_leave_in_one_write() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            before = line.chunks
            receipts = [await client.submit("Bob", str(n)) for n in range(50)]
            for n in range(50):
                send = await line.hear("SEND")
                assert send["payload"]["body"] == str(n)
                line.store(send, f"msg_{n}")
            assert line.chunks == before + 1
            assert [(await receipt).message_id for receipt in receipts] == [f"msg_{n}" for n in range(50)]

    asyncio.run(main())


def test_lost_acknowledgements_are_asked_for_again_when_somebody_waits() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            awaited = await client.submit("Bob", "awaited")
            kept = await client.submit("Bob", "kept")
            dropped = await client.submit("Bob", "dropped")
            sends = [await line.hear("SEND") for _ in range(3)]
            for number, send in enumerate(sends):
                line.store(send, f"msg_{number}")
            await asyncio.gather(awaited, kept, dropped)
            waiting = asyncio.create_task(awaited.delivered())
            await asyncio.sleep(0)
            del dropped
            gc.collect()
            line.hang_up()
            back = await daemon.accept()
            await back.welcome()
            send = await back.hear("SEND")
            assert send["id"] == sends[0]["id"]
            back.store(send, "msg_0", duplicate=True)
            back.acknowledge(send)
            await waiting
            assert awaited.duplicate is False
            assert back.silent
            later = asyncio.create_task(kept.delivered())
            assert (await back.hear("SEND"))["id"] == sends[1]["id"]
            back.acknowledge(sends[1])
            await later
            back.deliver("nothing more was asked", 1)
            await client.receive()
            assert back.silent

    asyncio.run(main())


def test_a_question_about_a_stored_message_that_is_refused_does_not_undo_it() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            receipt = await client.submit("Bob", "hello")
            line.store(await line.hear("SEND"))
            await receipt
            line.hang_up()
            back = await daemon.accept()
            await back.welcome()
            await until(lambda: client.state is ClientState.READY)
            waiting = asyncio.create_task(receipt.delivered())
            send = await back.hear("SEND")
            back.say("NACK", {"nack_id": send["id"], "code": "RATE_LIMITED", "retry_after_ms": 1})
            send = await back.hear("SEND")
            back.acknowledge(send)
            assert [delivered.by for delivered in await waiting] == ["Bob"]

    asyncio.run(main())


def test_an_old_message_is_not_sent_again_for_its_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the daemon's memory of ids it would be a second message."""
    monkeypatch.setattr(outbox, "ASK_AGAIN_SENDS", 2)

    async def main() -> None:
        async with connected() as (daemon, client, line):
            receipts = [await client.submit("Bob", str(n)) for n in range(3)]
            for _ in receipts:
                line.store(await line.hear("SEND"))
            await asyncio.gather(*receipts)
            line.hang_up()
            back = await daemon.accept()
            await back.welcome()
            await until(lambda: client.state is ClientState.READY)
            waiting = [asyncio.create_task(receipt.delivered()) for receipt in receipts]
            assert [(await back.hear("SEND"))["payload"]["body"] for _ in range(2)] == ["1", "2"]
            back.deliver("nothing more was asked", 1)
            await client.receive()
            assert back.silent
            for task in waiting:
                task.cancel()

    asyncio.run(main())


def test_only_so_many_are_unanswered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_UNANSWERED", 3)

    async def main() -> None:
        async with connected() as (_, client, line):
            sending = [asyncio.create_task(client.send("Bob", str(n))) for n in range(5)]
            heard = [await line.hear("SEND") for _ in range(3)]
            line.deliver("pause", 1)
            await client.receive()
            assert line.silent
            sending[3].cancel()
            line.store(heard[0])
            fourth = await line.hear("SEND")
            assert fourth["payload"]["body"] == "4"
            for send in [*heard[1:], fourth]:
                line.store(send)
            await asyncio.gather(*(sending[n] for n in (0, 1, 2, 4)))

    asyncio.run(main())


def test_retry_for_follows_the_daemons_advice_under_the_same_id() -> None:
    async def main() -> None:
        naps = Naps()
        async with connected(backoff=Backoff(sleep=naps, random=lambda: 0.5)) as (_, client, line):
            sending = asyncio.create_task(client.send("Bob", "hello", retry_for=60))
            ids = []
            for advice in ({"retry_after_ms": 250}, {}):
                send = await line.hear("SEND")
                ids.append(send["id"])
                line.say("NACK", {"nack_id": send["id"], "code": "QUEUE_FULL", "retryable": True} | advice)
            send = await line.hear("SEND")
            line.store(send)
            await sending
            assert {*ids, send["id"]} == {ids[0]}
            assert naps.seconds == [0.25, 0.6]
            sending = asyncio.create_task(client.send("Bob", "hello", retry_for=1))
            send = await line.hear("SEND")
            line.say("NACK", {"nack_id": send["id"], "code": "QUEUE_FULL", "retry_after_ms": 5_000})
            with pytest.raises(RelayError) as caught:
                await sending
            assert caught.value.retry_after_ms == 5_000

    asyncio.run(main())


def test_a_message_over_the_daemons_limit_is_refused_here() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            with pytest.raises(RelayError) as caught:
                await client.send("Bob", "x" * 1_048_576)
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            sending = asyncio.create_task(client.send("Bob", "x" * 5_000))
            await line.hear("SEND")
            line.hang_up()
            back = await daemon.accept()
            await back.welcome(max_frame_bytes=4_000)
            with pytest.raises(RelayError) as caught:
                await sending
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE

    asyncio.run(main())


@pytest.mark.parametrize("bad", [{"data": {"x": object()}}, {"thread": "\ud800"}])
def test_what_cannot_be_json_is_refused_here(bad: dict[str, Any]) -> None:
    async def main() -> None:
        async with connected() as (_, client, _line):
            with pytest.raises(RelayError) as caught:
                await client.send("Bob", "hello", **bad)
            assert caught.value.code is ErrorCode.INVALID_FORMAT

    asyncio.run(main())


def test_one_id_cannot_be_on_its_way_twice() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            receipt = await client.submit("Bob", "hello", id="mine")
            with pytest.raises(RelayError, match="already"):
                await client.send("Bob", "hello", id="mine")
            send = await line.hear("SEND")
            assert send["id"] == "mine"
            line.store(send)
            await receipt

    asyncio.run(main())


def test_cancelling_a_send_that_was_not_written_withdraws_it() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.hang_up()
            await until(lambda: client.state is not ClientState.READY)
            withdrawn = asyncio.create_task(client.send("Bob", "withdrawn"))
            kept = asyncio.create_task(client.send("Bob", "kept"))
            await asyncio.sleep(0)
            withdrawn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await withdrawn
            back = await daemon.accept()
            await back.welcome()
            send = await back.hear("SEND")
            assert send["payload"]["body"] == "kept"
            back.store(send)
            await kept

    asyncio.run(main())


def test_close_waits_for_the_answers() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            receipt = await client.submit("Bob", "hello")
            send = await line.hear("SEND")
            closing = asyncio.create_task(client.close())
            await asyncio.sleep(0)
            assert not closing.done()
            line.store(send)
            await closing
            assert (await receipt).message_id == "msg_1"
            await line.hear("BYE")
            await line.hear_end()

    asyncio.run(main())


def test_close_does_not_wait_for_ever_and_tells_the_truth_about_what_is_left() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            receipt = await client.submit("Bob", "hello")
            await line.hear("SEND")
            await client.close(0.01)
            with pytest.raises(ConnectionLost, match="may or may not have been stored"):
                await receipt
        async with connected() as (_, client, line):
            line.hang_up()
            await until(lambda: client.state is not ClientState.READY)
            receipt = await client.submit("Bob", "hello")
            await client.close(0)
            with pytest.raises(ConnectionLost, match="was not sent"):
                await receipt

    asyncio.run(main())


def test_closing_can_be_cancelled_and_still_ends_everything() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            await client.submit("Bob", "hello")
            await line.hear("SEND")
            closing = asyncio.create_task(client.close(60))
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert client.state is ClientState.CLOSED
            await line.hear("BYE")
            await line.hear_end()

    asyncio.run(main())


def test_busy_recipients_are_known_until_they_are_not() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            told = []
            client.on_busy = told.append
            line.say("BUSY", {"to": "Bob", "queue_depth": 800, "queue_capacity": 1000, "retry_after_ms": 5, "accepting": True})
            await until(lambda: "Bob" in client.backpressure)
            assert client.backpressure["Bob"].queue_depth == 800
            line.say("BUSY", {"to": "Bob", "queue_depth": 500, "queue_capacity": 1000, "accepting": True, "cleared": True})
            await until(lambda: not client.backpressure)
            assert [said.cleared for said in told] == [False, True]

    asyncio.run(main())


def test_what_the_daemon_tells_an_agent_reaches_its_callback() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            told = []
            client.on_event = told.append
            line.say("AGENT_EVENT", {"type": "loop.detected", "fields": {"stage": "held"}})
            await until(lambda: told)
            assert (told[0].type, told[0].fields) == ("loop.detected", {"stage": "held"})

    asyncio.run(main())


def test_a_callback_that_fails_does_not_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            client.on_control = lambda control: 1 // 0
            line.say("CONTROL", {"command": "pause"})
            line.deliver("still here", 1)
            assert (await client.receive(30)).body == "still here"

    asyncio.run(main())
    assert "a callback failed" in caplog.text
