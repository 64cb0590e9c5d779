"""Reports of a client, evidence with its acknowledgements, and commands to others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost

from .scripted import Line, connected, scripted_daemon, until


async def hear_report(line: Line) -> tuple[str, dict[str, Any]]:
    payload = (await line.hear("AGENT_EVENT"))["payload"]
    return payload["type"], payload["fields"]


@pytest.mark.parametrize("control", [False, True])
def test_only_who_asks_for_commands_is_offered_as_controlled(control: bool) -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient("Alice", socket=daemon.socket, control=control)
            connecting = asyncio.create_task(client.connect())
            hello = await (await daemon.accept()).welcome()
            await connecting
            assert hello["payload"]["capabilities"]["control"] is control
            await client.close(0)

    asyncio.run(main())


def test_a_report_is_said_and_not_waited_for() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            client.report("message.read", messageId="msg_1", evidence="transcript")
            client.report("agent.input")
            assert await hear_report(line) == ("message.read", {"messageId": "msg_1", "evidence": "transcript"})
            assert await hear_report(line) == ("agent.input", {})

    asyncio.run(main())


def test_without_a_connection_a_report_is_dropped_and_the_newest_state_is_said_again() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            client.report("agent.state", state="idle")
            assert await hear_report(line) == ("agent.state", {"state": "idle"})
            line.hang_up()
            await until(lambda: client.state is not ClientState.READY)
            client.report("agent.input")
            client.report("agent.state", state="working", door="typing")
            again = await daemon.accept()
            await again.welcome()
            assert await hear_report(again) == ("agent.state", {"state": "working", "door": "typing"})
            client.report("agent.state", state="waiting")
            assert await hear_report(again) == ("agent.state", {"state": "waiting"})
        client.report("agent.input")  # closed: nobody hears it, and nobody is bothered

    asyncio.run(main())


def test_what_cannot_be_reported_is_said() -> None:
    async def main() -> None:
        async with connected() as (_, client, _line):
            with pytest.raises(RelayError, match="cannot be written as JSON"):
                client.report("agent.state", state=object())
        observer = RelayClient("Alice", socket="/nowhere", observer=True)
        with pytest.raises(RelayError) as caught:
            observer.report("agent.input")
        assert caught.value.code is ErrorCode.PERMISSION_DENIED

    asyncio.run(main())


def test_what_the_daemon_finds_wrong_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            client.report("agent.mood")
            asked = await line.hear("AGENT_EVENT")
            line.say("ERROR", {"code": "FEATURE_UNSUPPORTED", "message": "No moods.", "reply_to": asked["id"]})
            await until(lambda: "No moods." in caplog.text)

    asyncio.run(main())


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_an_acknowledgement_carries_its_evidence_and_repeats_it() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("hello", 1, sync={"correlationId": "c", "blocking": True})
            message = await client.receive(30)
            await message.ack(door="typing", evidence="composer")
            said = (await line.hear("ACK"))["payload"]
            # Without a response it is no answer, so the question stays open.
            assert said == {"ack_id": "d_1", "seq": 1, "door": "typing", "evidence": "composer"}
            line.deliver("hello", 1, attempt=2)
            assert (await line.hear("ACK"))["payload"] == said

    asyncio.run(main())


def test_evidence_the_daemon_would_refuse_is_refused_here_and_the_message_stays_open() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("hello", 1)
            message = await client.receive(30)
            for wrong in ({"door": "x" * 65}, {"door": "x", "evidence": "x" * 201}, {"door": 1}):
                with pytest.raises(RelayError) as caught:
                    await message.ack(**wrong)  # type: ignore[arg-type]
                assert caught.value.code is ErrorCode.INVALID_FORMAT
            await message.ack(evidence="of nothing")
            assert (await line.hear("ACK"))["payload"] == {"ack_id": "d_1", "seq": 1}

    asyncio.run(main())


def test_a_receipt_shows_the_evidence() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            sending = asyncio.create_task(client.send("Bob", "hello"))
            send = await line.hear("SEND")
            line.store(send)
            receipt = await sending
            line.acknowledge(send, door="typing", evidence="composer")
            (one,) = await receipt.delivered(5)
            assert (one.by, one.door, one.evidence) == ("Bob", "typing", "composer")

    asyncio.run(main())


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_command_is_answered_with_the_agents_name() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            asking = asyncio.create_task(client.control("bob", "input", "yes\n"))
            asked = await line.hear("CONTROL")
            assert asked["payload"] == {"command": "input", "agent": "bob", "text": "yes\n"}
            line.say("ACK", {"ack_id": asked["id"], "stage": "controlled", "by": "Bob"})
            assert await asking == "Bob"
            asking = asyncio.create_task(client.control("Bob", "stop"))
            asked = await line.hear("CONTROL")
            line.say("ERROR", {"code": "AGENT_OFFLINE", "message": "Bob is not connected.", "reply_to": asked["id"]})
            with pytest.raises(RelayError, match="Bob is not connected"):
                await asking

    asyncio.run(main())


def test_a_command_is_never_given_twice() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            asking = asyncio.create_task(client.control("Bob", "interrupt"))
            await line.hear("CONTROL")
            listing = asyncio.create_task(client.agents())
            await line.hear("LIST_AGENTS")
            line.hang_up()
            with pytest.raises(ConnectionLost, match="may or may not"):
                await asking
            with pytest.raises(ConnectionLost, match="nothing was done"):
                await client.control("Bob", "interrupt")
            again = await daemon.accept()
            await again.welcome()
            asked = await again.hear()
            assert asked["type"] == "LIST_AGENTS"  # what may be asked again is
            again.say("AGENTS", {"agents": [], "reply_to": asked["id"]})
            await listing
            assert again.silent

    asyncio.run(main())
