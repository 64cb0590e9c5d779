"""Connecting, being refused, losing the connection, coming back, giving up."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.framing import encode_length
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost, DaemonNotRunning
from tests.unit.sdk.scripted import Line, Naps, connected, deliver, no_waiting, scripted_daemon, until, welcome


async def refuse(line: Line, code: str, **details: Any) -> dict[str, Any]:
    hello = await line.hear("HELLO")
    line.say("ERROR", {"code": code, "message": "No.", "fatal": True, "reply_to": hello["id"], "details": details})
    return hello


def test_hello_says_who_it_is_and_what_it_can() -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient("Alice", socket=daemon.socket, cli="claude", meta={"role": "lead"}, max_inflight=7)
            connecting = asyncio.create_task(client.connect())
            line = await daemon.accept()
            hello = await line.welcome()
            await connecting
            payload = hello["payload"]
            assert (payload["agent"], payload["cli"], payload["version"]) == ("Alice", "claude", 2)
            assert payload["capabilities"]["ack"] is True
            assert payload["capabilities"]["max_inflight"] == 7
            assert payload["meta"]["role"] == "lead"
            assert payload["meta"]["pid"] > 0
            assert "session" not in payload
            assert "mode" not in payload
            assert (client.state, client.session_id, client.resume_token) == (ClientState.READY, "ses_1", "token-1")
            await client.close()
            assert (await line.hear("BYE"))["payload"] == {"reason": "closing"}
            await line.hear_end()

    asyncio.run(main())


def test_a_missing_daemon_is_said_at_once_and_how_to_start_one(tmp_path: Any) -> None:
    async def main() -> None:
        client = RelayClient("Alice", socket=tmp_path / "none.sock", backoff=Backoff(sleep=naps))
        with pytest.raises(DaemonNotRunning, match=re.escape("`agent-relay up`")) as caught:
            async with client:
                pass
        assert caught.value.code is ErrorCode.SERVICE_UNAVAILABLE
        assert client.state is ClientState.CLOSED

    naps = Naps()
    asyncio.run(main())
    assert naps.seconds == []


def test_with_wait_the_first_connection_is_tried_again() -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            await daemon.stop_listening()
            naps = Naps()
            client = RelayClient("Alice", socket=daemon.socket, backoff=Backoff(sleep=naps), reconnect_attempts=None)
            connecting = asyncio.create_task(client.connect(wait=True))
            await until(lambda: len(naps.seconds) >= 2)
            await daemon.listen()
            line = await daemon.accept()
            await line.welcome()
            await connecting
            await client.close()

    asyncio.run(main())


def test_reconnecting_backs_off_by_the_policy_and_gives_up_after_ten_attempts() -> None:
    async def main() -> None:
        naps = Naps()
        states: list[ClientState] = []
        async with connected(backoff=Backoff(sleep=naps, random=lambda: 0.5)) as (daemon, client, line):
            client.on_state = states.append
            await daemon.stop_listening()
            line.hang_up()
            with pytest.raises(ConnectionLost, match="10 attempts") as caught:
                await client.receive()
            assert "agent-relay up" in caught.value.message
            with pytest.raises(ConnectionLost):
                await client.send("Bob", "too late")
        assert naps.seconds == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]
        assert states[:4] == [ClientState.BACKOFF, ClientState.CONNECTING, ClientState.BACKOFF, ClientState.CONNECTING]
        assert states[-1] is ClientState.CLOSED
        assert states.count(ClientState.CONNECTING) == 10

    asyncio.run(main())


def test_jitter_spreads_the_waits() -> None:
    async def main(random: float) -> float:
        naps = Naps()
        async with connected(backoff=Backoff(sleep=naps, random=lambda: random)) as (daemon, client, line):
            line.hang_up()
            await (await daemon.accept()).welcome()
            await until(lambda: client.state is ClientState.READY)
        return naps.seconds[0]

    assert asyncio.run(main(0.0)) == 0.085
    assert asyncio.run(main(1.0)) == 0.115


def test_it_comes_back_with_its_newest_token_and_counts_anew_after_a_welcome() -> None:
    async def main() -> None:
        naps = Naps()
        async with connected(backoff=Backoff(sleep=naps, random=lambda: 0.5)) as (daemon, client, first):
            line = first
            for number in (1, 2, 3):
                line.hang_up()
                line = await daemon.accept()
                hello = await line.welcome()
                assert hello["payload"]["session"] == {"resume_token": f"token-{number}"}
                await until(lambda: client.state is ClientState.READY)
        assert naps.seconds == [0.1, 0.1, 0.1]

    asyncio.run(main())


def test_a_token_that_is_too_old_is_dropped_on_the_same_connection() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.hang_up()
            back = await daemon.accept()
            hello = await back.hear("HELLO")
            assert hello["payload"]["session"] == {"resume_token": "token-1"}
            back.say("NACK", {"nack_id": hello["id"], "code": "RESUME_TOO_OLD", "message": "Too old."})
            again = await back.welcome()
            assert "session" not in again["payload"]
            await until(lambda: client.state is ClientState.READY)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("code", "details"),
    [
        ("PERMISSION_DENIED", {"reason": "name_in_use"}),
        ("PERMISSION_DENIED", {"reason": "bad_token"}),
        ("INVALID_TARGET", {"name": "all"}),
        ("VERSION_MISMATCH", {"supported": [9]}),
    ],
)
def test_a_refusal_at_the_first_handshake_is_raised_as_it_was_said(code: str, details: dict[str, Any]) -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient("Alice", socket=daemon.socket, backoff=no_waiting())
            connecting = asyncio.create_task(client.connect(wait=True))
            line = await daemon.accept()
            await refuse(line, code, **details)
            with pytest.raises(RelayError) as caught:
                await connecting
            assert (caught.value.code, caught.value.details) == (ErrorCode(code), details)
            assert client.state is ClientState.CLOSED
            assert daemon.lines.empty()

    asyncio.run(main())


def test_a_name_in_use_right_after_a_loss_is_tried_again() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.hang_up()
            for _ in range(2):
                await refuse(await daemon.accept(), "PERMISSION_DENIED", reason="name_in_use")
            await (await daemon.accept()).welcome()
            await until(lambda: client.state is ClientState.READY)

    asyncio.run(main())


def test_a_token_the_daemon_does_not_know_any_more_is_not_said_again() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.hang_up()
            await refuse(await daemon.accept(), "PERMISSION_DENIED", reason="bad_token")
            hello = await (await daemon.accept()).welcome()
            assert "session" not in hello["payload"]
            await until(lambda: client.state is ClientState.READY)

    asyncio.run(main())


@pytest.mark.parametrize(("code", "reason"), [("PERMISSION_DENIED", "token_reused"), ("INVALID_TARGET", "")])
def test_a_refusal_that_waiting_cannot_mend_ends_it(code: str, reason: str) -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.hang_up()
            await refuse(await daemon.accept(), code, reason=reason)
            with pytest.raises(RelayError) as caught:
                await client.receive()
            assert caught.value.code is ErrorCode(code)
            assert daemon.lines.empty()

    asyncio.run(main())


def test_a_daemon_that_cannot_store_now_is_tried_again_when_it_says() -> None:
    async def main() -> None:
        naps = Naps()
        async with connected(backoff=Backoff(sleep=naps, random=lambda: 0.5)) as (daemon, client, line):
            line.hang_up()
            back = await daemon.accept()
            await back.hear("HELLO")
            back.say("ERROR", {"code": "SERVICE_UNAVAILABLE", "message": "Disk full.", "fatal": True, "retry_after_ms": 700})
            await (await daemon.accept()).welcome()
            await until(lambda: client.state is ClientState.READY)
        assert naps.seconds == [0.1, 0.7]

    asyncio.run(main())


@pytest.mark.parametrize("reason", ["superseded", "revoked"])
def test_whose_name_was_taken_over_does_not_fight_for_it(reason: str) -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.say("BYE", {"reason": reason})
            with pytest.raises(ConnectionLost) as caught:
                await client.receive()
            assert caught.value.code is ErrorCode.PERMISSION_DENIED
            assert caught.value.details == {"reason": reason}
            assert daemon.lines.empty()

    asyncio.run(main())


def test_a_daemon_that_shuts_down_is_waited_for() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.say("BYE", {"reason": "shutdown"})
            await line.hear_end()
            await (await daemon.accept()).welcome()
            await until(lambda: client.state is ClientState.READY)

    asyncio.run(main())


def test_no_reconnecting_where_none_is_wanted() -> None:
    async def main() -> None:
        async with connected(reconnect_attempts=0) as (daemon, client, line):
            line.hang_up()
            with pytest.raises(ConnectionLost):
                await client.receive()
            assert daemon.lines.empty()

    asyncio.run(main())


def test_a_daemon_that_never_answers_is_given_up_after_the_connect_timeout() -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient("Alice", socket=daemon.socket, connect_timeout=0.5)
            with pytest.raises(ConnectionLost, match="did not answer"):
                await client.connect()
            line = await daemon.accept()
            await line.hear("HELLO")
            await line.hear_end()

    asyncio.run(main())


def test_cancelling_the_connecting_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient("Alice", socket=daemon.socket)
            connecting = asyncio.create_task(client.connect())
            line = await daemon.accept()
            await line.hear("HELLO")
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            await line.hear_end()
            assert client.state is ClientState.CLOSED
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_a_client_connects_once_and_says_so_before_and_after() -> None:
    async def main() -> None:
        unused = RelayClient("Alice", socket="/nowhere")
        with pytest.raises(ConnectionLost, match="async with"):
            await unused.send("Bob", "too early")
        await unused.close()
        async with connected() as (_, client, _line):
            with pytest.raises(ConnectionLost, match="once"):
                await client.connect()
            await client.close()
            await client.close()
            with pytest.raises(ConnectionLost, match="closed"):
                await client.send("Bob", "too late")

    asyncio.run(main())


def test_an_observer_holds_no_name_and_has_no_messages() -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient(socket=daemon.socket, observer=True)
            connecting = asyncio.create_task(client.connect())
            line = await daemon.accept()
            assert (await line.welcome())["payload"]["mode"] == "observer"
            await connecting
            for attempt in (client.send("Bob", "x"), client.request("Bob", "x"), client.receive(), client.join("#dev")):
                with pytest.raises(RelayError) as caught:
                    await attempt
                assert caught.value.code is ErrorCode.PERMISSION_DENIED
            with pytest.raises(RelayError):
                client.messages()
            await client.close()

    asyncio.run(main())


def test_a_nameless_agent_is_refused_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_RELAY_NAME", raising=False)
    with pytest.raises(RelayError, match="needs a name"):
        RelayClient()
    monkeypatch.setenv("AGENT_RELAY_NAME", "Wrapped")
    assert RelayClient().name == "Wrapped"


def test_pings_are_answered_with_the_same_nonce() -> None:
    async def main() -> None:
        async with connected() as (_, _client, line):
            line.say("PING", {"nonce": "n-1"})
            assert (await line.hear("PONG"))["payload"] == {"nonce": "n-1"}

    asyncio.run(main())


def test_a_silent_daemon_is_pinged_and_then_left() -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient("Alice", socket=daemon.socket, backoff=no_waiting())
            connecting = asyncio.create_task(client.connect())
            line = await daemon.accept()
            await line.welcome(heartbeat_ms=10)
            await connecting
            await line.hear("PING")
            await line.hear_end()
            line = await daemon.accept()
            await line.welcome()
            await until(lambda: client.state is ClientState.READY)
            await client.close()

    asyncio.run(main())


def test_what_follows_the_welcome_in_one_chunk_is_heard_by_the_new_limit() -> None:
    async def main() -> None:
        async with scripted_daemon() as daemon:
            client = RelayClient("Alice", socket=daemon.socket)
            connecting = asyncio.create_task(client.connect())
            line = await daemon.accept()
            await line.hear("HELLO")
            large = "x" * 3_000_000
            line.say("WELCOME", welcome("Alice", max_frame_bytes=4_000_000))
            line.say_bytes(deliver(large, 1))
            await connecting
            assert (await client.receive(30)).body == large
            await client.close()

    asyncio.run(main())


def test_a_frame_over_the_daemons_own_limit_ends_the_connection() -> None:
    async def main() -> None:
        async with connected() as (daemon, client, line):
            line.say_bytes(encode_length(2_000_000_000))
            await line.hear_end()
            await (await daemon.accept()).welcome()
            await until(lambda: client.state is ClientState.READY)

    asyncio.run(main())


def test_unknown_and_unreadable_frames_are_ignored() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.say("WEATHER", {"sunny": True})
            line.say_bytes(encode_length(3) + b"{{{")
            line.deliver("still here", 1)
            assert (await client.receive(30)).body == "still here"

    asyncio.run(main())
