"""Questions and their answers, both ways they can come."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.states import ClientState
from agent_relay.sdk import sending
from agent_relay.sdk.errors import TimedOut
from tests.unit.sdk.scripted import connected, until


def test_an_acknowledgement_with_content_is_the_answer() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("Bob", "ready?", timeout=30))
            send = await line.hear("SEND")
            sync = send["payload_meta"]["sync"]
            assert (sync["blocking"], sync["timeoutMs"], bool(sync["correlationId"])) == (True, 30_000, True)
            assert "requires_ack" not in send["payload_meta"]
            line.store(send)
            line.acknowledge(send, correlationId="another", response="not this")
            line.acknowledge(send, correlationId=sync["correlationId"], response="OK", responseData={"n": 1})
            reply = await asking
            assert (reply.by, reply.body, reply.response, reply.data, reply.message) == ("Bob", "OK", "OK", {"n": 1}, None)

    asyncio.run(main())


@pytest.mark.parametrize("acknowledged_first", [True, False])
def test_a_reply_message_is_the_answer_and_nobody_elses(acknowledged_first: bool) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("bob", "ready?"))
            send = await line.hear("SEND")
            correlation_id = send["payload_meta"]["sync"]["correlationId"]
            line.store(send, "msg_q")
            if acknowledged_first:
                line.acknowledge(send, correlationId=correlation_id, response_message_id="msg_5")
            line.deliver("unrelated", 4)
            line.deliver("yes", 5, reply_to="msg_q")
            if not acknowledged_first:
                line.acknowledge(send, correlationId=correlation_id, response_message_id="msg_5")
            reply = await asking
            assert reply.message is not None
            assert (reply.by, reply.body, reply.message.id) == ("Bob", "yes", "msg_5")
            assert (await line.hear("ACK"))["payload"]["ack_id"] == "d_5"
            assert (await client.receive()).body == "unrelated"
            line.deliver("late", 6, reply_to="msg_q")
            assert (await client.receive()).body == "late"

    asyncio.run(main())


def test_who_was_not_asked_cannot_answer() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request(["Carol"], "ready?"))
            send = await line.hear("SEND")
            line.store(send, "msg_q")
            line.deliver("I say yes", 5, reply_to="msg_q")
            assert (await client.receive()).body == "I say yes"
            assert not asking.done()
            asking.cancel()

    asyncio.run(main())


def test_the_daemons_time_out_is_raised() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("Bob", "ready?", timeout=0.5))
            send = await line.hear("SEND")
            correlation_id = send["payload_meta"]["sync"]["correlationId"]
            line.store(send)
            about = {"message_id": "msg_1", "correlationId": correlation_id, "waited_ms": 500}
            line.say("NACK", {"nack_id": send["id"], "code": "DELIVERY_TIMEOUT", "message": "No answer."} | about)
            with pytest.raises(TimedOut, match="No answer") as caught:
                await asking
            assert caught.value.details["waited_ms"] == 500
            assert line.silent

    asyncio.run(main())


def test_where_the_daemon_says_nothing_the_wait_ends_here_and_is_called_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_ANSWER_GRACE_S", 0.01)

    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("Bob", "ready?", timeout=0.01))
            send = await line.hear("SEND")
            with pytest.raises(TimedOut):
                await asking
            assert (await line.hear("CANCEL"))["payload"] == {"correlationId": send["payload_meta"]["sync"]["correlationId"]}

    asyncio.run(main())


def test_cancelling_calls_it_off() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("Bob", "ready?"))
            send = await line.hear("SEND")
            line.store(send)
            await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await line.hear("CANCEL")
            line.say("ACK", {"ack_id": "x", "stage": "cancelled"})
            line.deliver("late", 1, reply_to="msg_1")
            assert (await client.receive()).body == "late"

    asyncio.run(main())


def test_a_refused_question_raises_the_refusal() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("Bbo", "ready?"))
            send = await line.hear("SEND")
            line.say("NACK", {"nack_id": send["id"], "code": "AGENT_NOT_FOUND", "message": "No Bbo."})
            with pytest.raises(RelayError, match="No Bbo"):
                await asking
            asking = asyncio.create_task(client.request("Bob", "ready?"))
            send = await line.hear("SEND")
            line.store(send)
            line.say(
                "NACK", {"nack_id": send["id"], "code": "REJECTED", "message": "Go away.", "message_id": "msg_1", "to": "Bob"}
            )
            with pytest.raises(RelayError, match="Go away"):
                await asking

    asyncio.run(main())


def test_asking_nobody_is_said_at_once() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("*", "anybody?"))
            line.store(await line.hear("SEND"), recipients=0)
            with pytest.raises(RelayError) as caught:
                await asking
            assert caught.value.code is ErrorCode.AGENT_OFFLINE
            with pytest.raises(RelayError, match="timeout"):
                await client.request("Bob", "now?", timeout=0)

    asyncio.run(main())


def test_a_question_survives_a_reconnect_also_when_the_reply_comes_before_the_receipt() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            asking = asyncio.create_task(client.request("Bob", "ready?"))
            send = await line.hear("SEND")
            line.hang_up()
            back = await daemon.accept()
            await back.welcome()
            again = await back.hear("SEND")
            assert again["id"] == send["id"]
            back.deliver("yes", 5, reply_to="msg_q")
            back.store(again, "msg_q", duplicate=True)
            assert (await asking).body == "yes"
            assert (await back.hear("ACK"))["payload"]["ack_id"] == "d_5"

    asyncio.run(main())


def test_an_open_question_is_asked_again_after_a_reconnect() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            asking = asyncio.create_task(client.request("Bob", "ready?"))
            send = await line.hear("SEND")
            line.store(send, "msg_q")
            line.hang_up()
            back = await daemon.accept()
            await back.welcome()
            again = await back.hear("SEND")
            assert again["id"] == send["id"]
            back.store(again, "msg_q", duplicate=True)
            correlation_id = again["payload_meta"]["sync"]["correlationId"]
            back.acknowledge(again, correlationId=correlation_id, response="OK")
            assert (await asking).response == "OK"

    asyncio.run(main())


def test_a_promised_reply_that_cannot_reach_us_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "_REPLY_GRACE_S", 0.01)

    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.request("Bob", "ready?"))
            send = await line.hear("SEND")
            correlation_id = send["payload_meta"]["sync"]["correlationId"]
            line.store(send, "msg_q")
            line.acknowledge(send, correlationId=correlation_id, response_message_id="msg_5")
            asked = await line.hear("HISTORY")
            assert asked["payload"] == {"view": "message", "id": "msg_5"}
            found = {"message_id": "msg_5", "from": "Bob", "payload": {"body": "yes", "data": {"n": 1}}}
            line.say("HISTORY_RESULT", {"messages": [found], "trail": [], "reply_to": asked["id"]})
            reply = await asking
            assert (reply.by, reply.body, reply.data) == ("Bob", "yes", {"n": 1})
            line.deliver("yes", 5, reply_to="msg_q")
            assert (await line.hear("ACK"))["payload"]["ack_id"] == "d_5"
            with pytest.raises(TimedOut):
                await client.receive(0.01)

    asyncio.run(main())


def test_questions_to_the_daemon_are_asked_again_until_they_are_answered() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            asking = asyncio.create_task(client.agents())
            first = await line.hear("LIST_AGENTS")
            line.hang_up()
            await until(lambda: client.state is not ClientState.READY)
            back = await daemon.accept()
            await back.welcome()
            again = await back.hear("LIST_AGENTS")
            assert again["id"] == first["id"]
            known = {"name": "Bob", "connected": True, "state": "idle", "queue_depth": 2, "subscriptions": ["code.>"], "new": 1}
            back.say("AGENTS", {"agents": [known], "server": {"version": "9"}, "reply_to": again["id"]})
            view = await asking
            bob = view.find("bob")
            assert bob is not None
            assert (bob.name, bob.connected, bob.queue_depth, bob.subscriptions) == ("Bob", True, 2, ("code.>",))
            assert (bob.raw["new"], view.server, view.find("Carol")) == (1, {"version": "9"}, None)

    asyncio.run(main())


def test_history_and_dead_letters() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.history(with_="Bob", since=5, limit=2, pending=True))
            asked = await line.hear("HISTORY")
            assert asked["payload"] == {"with": "Bob", "since": 5, "limit": 2, "pending": True}
            line.say("HISTORY_RESULT", {"messages": [{"message_id": "msg_1"}], "next_cursor": "7", "reply_to": asked["id"]})
            page = await asking
            assert (page.messages, page.next_cursor) == ([{"message_id": "msg_1"}], "7")

            asking_one = asyncio.create_task(client.message("msg_1"))
            asked = await line.hear("HISTORY")
            line.say(
                "HISTORY_RESULT", {"messages": [{"message_id": "msg_1"}], "trail": [{"event": "sent"}], "reply_to": asked["id"]}
            )
            assert (await asking_one).trail == [{"event": "sent"}]

            asking = asyncio.create_task(client.dead_letters(3))
            asked = await line.hear("HISTORY")
            assert asked["payload"] == {"view": "dead_letters", "limit": 3}
            line.say("HISTORY_RESULT", {"messages": [], "reply_to": asked["id"]})
            assert (await asking).messages == []

            retrying = asyncio.create_task(client.retry_dead_letter("msg_1"))
            asked = await line.hear("CONTROL")
            assert asked["payload"] == {"command": "retry_dead_letter", "id": "msg_1"}
            line.say("ACK", {"ack_id": asked["id"], "stage": "requeued", "message_id": "msg_9"})
            assert await retrying == "msg_9"

            joining = asyncio.create_task(client.leave("#none"))
            asked = await line.hear("CHANNEL_LEAVE")
            line.say("ERROR", {"code": "CHANNEL_NOT_FOUND", "message": "No channel.", "reply_to": asked["id"]})
            with pytest.raises(RelayError, match="No channel"):
                await joining

    asyncio.run(main())
