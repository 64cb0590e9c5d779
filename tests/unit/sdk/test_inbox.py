"""DELIVER: handed out once, acknowledged when dealt with, put back when not."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.states import ClientState
from agent_relay.sdk import inbox
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost, TimedOut
from tests.unit.sdk.scripted import Line, connected, until


async def hear_ack(line: Line) -> str:
    return (await line.hear("ACK"))["payload"]["ack_id"]


def test_a_message_has_everything_that_was_said() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sync = {"correlationId": "c-1", "timeoutMs": 5, "blocking": True}
            line.deliver("hello", 3, 2, "code.x", requires_ack=True, reply_to="msg_0", sync=sync)
            message = await client.receive()
            assert (message.id, message.message_id, message.delivery_id) == ("msg_3", "msg_3", "d_3")
            assert (message.from_, message.to, message.topic, message.body) == ("Bob", "Alice", "code.x", "hello")
            assert (message.kind, message.thread, message.data, message.payload) == ("message", None, None, {"body": "hello"})
            assert (message.seq, message.attempt, message.prev_seq) == (3, 2, None)
            assert (message.reply_to, message.correlation_id, message.requires_ack) == ("msg_0", "c-1", True)

    asyncio.run(main())


def test_what_is_discarded_is_acknowledged_and_handed_to_nobody() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("waits", 1)
            message = await client.receive()
            client._inbox.release(message)  # put back, as a loop that is left does
            line.deliver("waits, too", 2, topic="code.x")
            await until(lambda: len(client._inbox.queue) == 2)
            client.discard("bob")
            assert [await hear_ack(line), await hear_ack(line)] == ["d_1", "d_2"]
            line.deliver("comes later", 3)
            assert await hear_ack(line) == "d_3"
            assert len(client._inbox.queue) == 0

    asyncio.run(main())


def test_the_loop_acknowledges_when_it_comes_back_for_the_next() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            for number in (1, 2):
                line.deliver(f"m{number}", number)
            seen = []

            async def consume() -> None:
                async for message in client.messages():
                    seen.append(message.body)
                    if message.body == "m1":
                        assert line.silent

            consuming = asyncio.create_task(consume())
            assert await hear_ack(line) == "d_1"
            assert await hear_ack(line) == "d_2"
            assert seen == ["m1", "m2"]
            await client.close()
            await consuming

    asyncio.run(main())


async def leave_by_break(client: RelayClient) -> None:
    async for message in client.messages():
        if message.body:
            break


async def leave_by_return(client: RelayClient) -> str:
    async for message in client.messages():
        try:
            return message.body
        finally:
            await asyncio.sleep(0)
    return ""


async def leave_an_inner_loop(client: RelayClient) -> None:
    async with asyncio.timeout(120):
        for _ in range(1):
            async for message in client.messages():
                with pytest.raises(ZeroDivisionError):
                    _ = 1 // 0
                if message:
                    break


@pytest.mark.parametrize("leave", [leave_by_break, leave_by_return, leave_an_inner_loop])
def test_leaving_the_loop_acknowledges_nothing_and_puts_the_message_back(leave: Any) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            line.deliver("m2", 2)
            await leave(client)
            again = await client.receive()
            assert (again.body, line.silent) == ("m1", True)
            await again.ack()
            assert await hear_ack(line) == "d_1"
            assert (await client.receive()).body == "m2"

    asyncio.run(main())


async def ack_and_break(client: RelayClient) -> None:
    async for message in client.messages():
        await message.ack()
        break


async def return_from_a_block(client: RelayClient) -> str:
    async for message in client.messages():
        async with message:
            return message.body
    return ""


async def ack_after_the_loop(client: RelayClient) -> None:
    async for message in client.messages():
        if message.body:
            break
    await message.ack()


@pytest.mark.parametrize("leave", [ack_and_break, return_from_a_block, ack_after_the_loop])
def test_what_was_answered_is_not_put_back(leave: Any) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            line.deliver("m2", 2)
            await leave(client)
            assert await hear_ack(line) == "d_1"
            assert (await client.receive()).body == "m2"
            assert line.silent

    asyncio.run(main())


def test_a_block_acknowledges_at_its_end_and_puts_back_what_it_fails_at() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            line.deliver("m2", 2)
            with pytest.raises(ZeroDivisionError):
                async with await client.receive():
                    raise ZeroDivisionError
            async with await client.receive() as message:
                assert (message.body, line.silent) == ("m1", True)
            assert await hear_ack(line) == "d_1"
            async with await client.receive() as refused:
                await refused.nack(message="no")  # an answer of its own goes before the block's
            assert (await line.hear("NACK"))["payload"]["nack_id"] == "d_2"
            assert line.silent

    asyncio.run(main())


def test_a_loop_does_not_acknowledge_what_its_body_gave_back() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            line.deliver("m2", 2)
            seen: list[str] = []
            async for message in client.messages():
                seen.append(message.body)
                if len(seen) > 2:
                    break
                with contextlib.suppress(ZeroDivisionError):
                    async with message:
                        if len(seen) == 1:
                            raise ZeroDivisionError
            assert seen == ["m1", "m1", "m2"]
            assert await hear_ack(line) == "d_1"
            assert line.silent

    asyncio.run(main())


async def fail_in_the_body(client: RelayClient) -> None:
    async for _ in client.messages():
        raise ZeroDivisionError


async def fail_in_a_call(client: RelayClient) -> None:
    async for message in client.messages():
        int(message.body)


async def fail_in_a_nested_block(client: RelayClient) -> None:
    async for message in client.messages():
        try:
            async with asyncio.timeout(120):
                await asyncio.sleep(0)
                _ = message.body.index("nothing of the kind")
        finally:
            str(message)


async def fail_in_an_await(client: RelayClient) -> None:
    async for _ in client.messages():
        await asyncio.wait_for(asyncio.Event().wait(), 0.001)


@pytest.mark.parametrize("fail", [fail_in_the_body, fail_in_a_call, fail_in_a_nested_block, fail_in_an_await])
def test_an_exception_in_the_body_puts_the_message_back_first(fail: Any) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            line.deliver("m2", 2)
            with pytest.raises((ZeroDivisionError, ValueError, TimeoutError)):
                await fail(client)
            line.deliver("m1", 1, attempt=2)  # the daemon's redelivery is the same message, not another one
            line.deliver("m3", 3)
            again = await client.receive()
            assert (again.body, line.silent) == ("m1", True)
            await again.ack()
            assert await hear_ack(line) == "d_1"
            assert [(await client.receive()).body for _ in range(2)] == ["m2", "m3"]

    asyncio.run(main())


def test_a_cancelled_consumer_puts_its_message_back() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            busy = asyncio.Event()

            async def consume() -> None:
                async for _ in client.messages():
                    busy.set()
                    await asyncio.Event().wait()

            consuming = asyncio.create_task(consume())
            await busy.wait()
            consuming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consuming
            assert (await client.receive(30)).body == "m1"
            assert line.silent

    asyncio.run(main())


def test_two_loops_over_one_stream_go_on_where_the_first_was_left() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            for number in (1, 2, 3):
                line.deliver(f"m{number}", number)
            stream = client.messages(timeout=2.0)  # only the last loop ends by it
            async for message in stream:
                assert message.body == "m1"
                await message.ack()
                break
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async for message in stream:
                    assert message.body == "m2"
                    _ = 1 // 0
            assert [message.body async for message in stream] == ["m2", "m3"]
            assert [await hear_ack(line) for _ in range(3)] == ["d_1", "d_2", "d_3"]

    asyncio.run(main())


def test_several_workers_share_the_messages() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            seen: list[str] = []

            async def work() -> None:
                async for message in client.messages():
                    await asyncio.sleep(0)
                    seen.append(message.body)

            workers = [asyncio.create_task(work()) for _ in range(3)]
            for number in range(1, 31):
                line.deliver(f"m{number}", number)
            acknowledged = {await hear_ack(line) for _ in range(30)}
            assert len(acknowledged) == len(set(seen)) == len(seen) == 30
            await client.close()
            await asyncio.gather(*workers)

    asyncio.run(main())


def test_a_redelivery_is_not_handed_out_twice() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.deliver("m1", 1)
            message = await client.receive()
            line.deliver("m1", 1, attempt=2)
            with pytest.raises(TimedOut):
                await client.receive(0.02)
            assert message.attempt == 2
            await message.ack()
            assert await hear_ack(line) == "d_1"
            line.deliver("m1", 1, attempt=3)
            assert await hear_ack(line) == "d_1"
            line.hang_up()
            back = await daemon.accept()
            await back.welcome()
            back.deliver("m1", 1, attempt=4)
            assert await hear_ack(back) == "d_1"
            back.deliver("m2", 2)
            assert (await client.receive()).body == "m2"

    asyncio.run(main())


def test_what_was_acknowledged_while_offline_is_acknowledged_again() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.deliver("m1", 1, sync={"correlationId": "c-1", "blocking": True})
            message = await client.receive()
            line.hang_up()
            await until(lambda: client.state is not ClientState.READY)
            await message.ack("OK", {"n": 1})
            back = await daemon.accept()
            await back.welcome()
            back.deliver("m1", 1, attempt=2)
            payload = (await back.hear("ACK"))["payload"]
            assert payload == {"ack_id": "d_1", "seq": 1, "correlationId": "c-1", "response": "OK", "responseData": {"n": 1}}

    asyncio.run(main())


def test_the_memory_of_deliveries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "REMEMBERED_DELIVERIES", 2)

    async def main() -> None:
        async with connected() as (_, client, line):
            for number in (1, 2, 3):
                line.deliver("m", number)
                await (await client.receive()).ack()
                await hear_ack(line)
            line.deliver("m", 3, attempt=2)
            assert await hear_ack(line) == "d_3"
            line.deliver("m", 1, attempt=2)
            assert (await client.receive()).delivery_id == "d_1"

    asyncio.run(main())


def test_a_plain_ack_does_not_answer_a_question() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("ready?", 1, sync={"correlationId": "c-1", "blocking": True})
            await (await client.receive()).ack()
            assert (await line.hear("ACK"))["payload"] == {"ack_id": "d_1", "seq": 1}

    asyncio.run(main())


def test_a_second_answer_is_not_said() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            message = await client.receive()
            await message.ack("first")
            await message.ack("second")
            await message.nack()
            assert (await line.hear("ACK"))["payload"]["response"] == "first"
            line.say("PING", {"nonce": 1})
            await line.hear("PONG")

    asyncio.run(main())


def test_a_rejected_message_is_rejected_again_when_it_comes_again() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            await (await client.receive()).nack(ErrorCode.REJECTED, "Not for me.")
            for attempt in (2, 3):
                assert (await line.hear("NACK"))["payload"] == {"nack_id": "d_1", "code": "REJECTED", "message": "Not for me."}
                line.deliver("m1", 1, attempt)

    asyncio.run(main())


def test_a_busy_agent_gets_its_message_again() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("m1", 1)
            await (await client.receive()).nack(ErrorCode.AGENT_BUSY, retry_after_ms=20)
            assert (await line.hear("NACK"))["payload"] == {"nack_id": "d_1", "code": "AGENT_BUSY", "retry_after_ms": 20}
            line.deliver("m1", 1, attempt=2)
            assert (await client.receive()).attempt == 2

    asyncio.run(main())


def test_a_reply_names_its_message_and_comes_before_the_acknowledgement() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("ready?", 1, sync={"correlationId": "c-1", "blocking": True})
            message = await client.receive()
            replying = asyncio.create_task(message.reply("yes", data={"n": 1}))
            send = await line.hear("SEND")
            assert (send["to"], send["payload"]) == ("Bob", {"body": "yes", "data": {"n": 1}})
            assert send["payload_meta"]["reply_to"] == "msg_1"
            assert send["id"] == "re_d_1"
            assert line.silent
            line.store(send)
            await replying
            assert (await line.hear("ACK"))["payload"] == {"ack_id": "d_1", "seq": 1}
            again = asyncio.create_task(message.reply("and more"))
            send = await line.hear("SEND")
            assert send["id"] != "re_d_1"
            line.store(send)
            await again

    asyncio.run(main())


def test_an_unreadable_payload_is_rejected_and_not_handed_out() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            delivery = {"seq": 1, "session_id": "s", "message_id": "msg_1"}
            line.say("DELIVER", {"body": 7}, id="d_1", from_="Bob", delivery=delivery)
            assert (await line.hear("NACK"))["payload"]["code"] == "REJECTED"
            line.deliver("m2", 2)
            assert (await client.receive()).body == "m2"

    asyncio.run(main())


def test_waiting_ends_with_the_client() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("unread", 1)
            await (await client.receive()).ack()
            waiting = asyncio.create_task(client.receive())
            looping = asyncio.create_task(asyncio.wait_for(_drain(client), 30))
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(ConnectionLost):
                await waiting
            await looping

    async def _drain(client: RelayClient) -> None:
        async for _ in client.messages():
            pass

    asyncio.run(main())


def test_a_feed_gets_the_messages_of_its_topic_and_gives_back_what_it_did_not_read() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):

            async def answer(kind: str) -> None:
                asked = await line.hear(kind)
                assert asked["payload"] == {"topic": "code.>"}
                line.say("ACK", {"ack_id": asked["id"], "stage": kind.lower() + "d"})

            subscribing = asyncio.create_task(answer("SUBSCRIBE"))
            async with client.subscribe("code.>") as feed:
                await subscribing
                line.deliver("plain", 1)
                for number in (2, 3, 4):
                    line.deliver(f"m{number}", number, topic="code.review.done")
                for number in (2, 3):
                    async for message in feed:
                        assert message.body == f"m{number}"
                        await message.ack()
                        break
                    assert await hear_ack(line) == f"d_{number}"
                assert (await client.receive()).body == "plain"
                unsubscribing = asyncio.create_task(answer("UNSUBSCRIBE"))
            await unsubscribing
            assert (await client.receive()).body == "m4"

    asyncio.run(main())


def test_a_refused_subscription_is_raised() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            entering = asyncio.create_task(client.subscribe("a..b").__aenter__())
            asked = await line.hear("SUBSCRIBE")
            line.say("ERROR", {"code": "INVALID_FORMAT", "message": "No topic.", "reply_to": asked["id"]})
            with pytest.raises(RelayError, match="No topic"):
                await entering

    asyncio.run(main())
