"""The SDK against the real daemon: its own process, its own files, killed where that is the question."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import ControlPayload
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost, DaemonNotRunning, TimedOut
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess

PATIENCE_S = 30.0
QUICK = Backoff(policy=RetryPolicy(base_ms=20, cap_ms=100, jitter=0.15))


@pytest.fixture(scope="module")
def shared() -> Iterator[DaemonProcess]:
    """For tests that leave the daemon alone; each uses names of its own."""
    with DaemonProcess("--ack-timeout-ms=300", "--heartbeat-ms=2s") as daemon:
        yield daemon


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


async def take(client: RelayClient, count: int) -> list[str]:
    """The bodies of the next so many messages, each acknowledged; there are no more of them."""
    found: list[str] = []
    async for message in client.messages(timeout=PATIENCE_S):
        found.append(message.body)
        if len(found) == count:
            await message.ack()
            break
    with pytest.raises(TimedOut):
        await client.receive(0.05)
    return found


async def answer(client: RelayClient, handle: Callable[[Message], Any]) -> None:
    async for message in client.messages():
        await handle(message)


# --- two agents ---------------------------------------------------------------------------------------------------


def test_a_message_is_stored_delivered_and_acknowledged(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Alice1") as alice, shared.connect("Bob1") as bob:
            receipt = await alice.send("bob1", "review auth.py", thread="t", data={"n": 1}, kind="action")
            assert (receipt.recipients, receipt.queued, receipt.duplicate) == (1, 0, False)
            message = await bob.receive(PATIENCE_S)
            assert (message.from_, message.to, message.body) == ("Alice1", "Bob1", "review auth.py")
            assert (message.thread, message.data, message.kind, message.seq) == ("t", {"n": 1}, "action", 1)
            assert message.id == receipt.message_id
            await message.ack(response="OK", response_data={"lines": 12})
            (delivered,) = await receipt.delivered(PATIENCE_S)
            assert (delivered.by, delivered.response, delivered.data) == ("Bob1", "OK", {"lines": 12})
            again = await alice.send("Bob1", "review auth.py", id=receipt.id)
            assert (again.duplicate, again.message_id) == (True, receipt.message_id)
            assert [delivered.by for delivered in await again.delivered(PATIENCE_S)] == ["Bob1"]

    asyncio.run(main())


def test_an_unknown_recipient_is_refused_with_a_hint(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Carol2") as carol, shared.connect("Dave2"):
            with pytest.raises(RelayError) as caught:
                await carol.send("Dvae2", "hello")
            assert caught.value.code is ErrorCode.AGENT_NOT_FOUND
            assert "Dave2" in caught.value.details["did_you_mean"]

    asyncio.run(main())


def test_the_offline_get_their_messages_in_order_when_they_come(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Late3"):
            pass
        async with shared.connect("Early3") as early:
            receipts = [await early.send("Late3", f"m{n}") for n in range(20)]
            assert all(receipt.queued == 1 for receipt in receipts)
            async with shared.connect("Late3") as late:
                assert await take(late, 20) == [f"m{n}" for n in range(20)]
            for receipt in receipts:
                await receipt.delivered(PATIENCE_S)

    asyncio.run(main())


@pytest.mark.parametrize("way", ["ack", "reply"])
def test_a_request_is_answered(shared: DaemonProcess, way: str) -> None:
    async def main() -> None:
        async with shared.connect(f"Asker-{way}") as asker, shared.connect(f"Oracle-{way}") as oracle:

            async def handle(message: Message) -> None:
                if way == "ack":
                    await message.ack("yes", {"n": 1})
                else:
                    await message.reply("yes", data={"n": 1})

            answering = asyncio.create_task(answer(oracle, handle))
            for _ in range(5):
                reply = await asker.request(oracle.name, "ready?", timeout=PATIENCE_S)
                assert (reply.by, reply.body, reply.data) == (oracle.name, "yes", {"n": 1})
            with pytest.raises(TimedOut):
                await asker.receive(0.05)  # the replies went to whoever asked
            answering.cancel()

    asyncio.run(main())


def test_a_request_times_out_and_a_late_reply_is_a_message(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Asker5") as asker, shared.connect("Slow5") as slow:
            with pytest.raises(TimedOut) as caught:
                await asker.request("Slow5", "ready?", timeout=0.2)
            assert caught.value.code is ErrorCode.DELIVERY_TIMEOUT
            assert caught.value.details["waited_ms"] >= 200
            message = await slow.receive(PATIENCE_S)
            await message.reply("late")
            late = await asker.receive(PATIENCE_S)
            assert (late.body, late.reply_to) == ("late", message.id)
            await late.ack()

    asyncio.run(main())


def test_a_reply_reaches_who_asked_though_its_inbox_is_full(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Full6", max_inflight=2) as asker, shared.connect("Chatty6") as chatty:
            for n in range(5):
                await chatty.send("Full6", f"noise {n}")
            asking = asyncio.create_task(asker.request("Chatty6", "ready?", timeout=PATIENCE_S))
            question = await chatty.receive(PATIENCE_S)
            await question.reply("yes")
            assert (await asking).body == "yes"
            assert await take(asker, 5) == [f"noise {n}" for n in range(5)]

    asyncio.run(main())


def test_a_refusal_reaches_the_sender(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Alice7") as alice, shared.connect("Picky7") as picky:
            receipt = await alice.send("Picky7", "spam")
            await (await picky.receive(PATIENCE_S)).nack(ErrorCode.REJECTED, "No spam.")
            with pytest.raises(RelayError, match="No spam") as caught:
                await receipt.delivered(PATIENCE_S)
            assert caught.value.code is ErrorCode.REJECTED

    asyncio.run(main())


def test_a_busy_agent_is_asked_again(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Alice8") as alice, shared.connect("Busy8") as busy:
            receipt = await alice.send("Busy8", "task")
            await (await busy.receive(PATIENCE_S)).nack(ErrorCode.AGENT_BUSY, retry_after_ms=50)
            again = await busy.receive(PATIENCE_S)
            assert again.attempt == 2
            await again.ack()
            await receipt.delivered(PATIENCE_S)

    asyncio.run(main())


def test_a_slow_handler_is_not_given_its_message_twice(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Alice9") as alice, shared.connect("Slow9") as slow:
            receipt = await alice.send("Slow9", "takes long")
            seen = []

            async def handle() -> None:
                async for message in slow.messages():
                    seen.append(message.body)
                    if message.body == "takes long":
                        await until(lambda message=message: message.attempt >= 3)  # type: ignore[misc]

            handling = asyncio.create_task(handle())
            await receipt.delivered(PATIENCE_S)
            await (await alice.send("Slow9", "the end")).delivered(PATIENCE_S)
            handling.cancel()
            assert seen == ["takes long", "the end"]

    asyncio.run(main())


def test_an_exception_leaves_the_message_for_the_next_session(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Alice10") as alice:
            async with shared.connect("Clumsy10"):
                pass
            receipt = await alice.send("Clumsy10", "careful")
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with shared.connect("Clumsy10") as clumsy:
                    async for _ in clumsy.messages():
                        _ = 1 // 0
            with pytest.raises(TimedOut):
                await receipt.delivered(0.05)
            async with shared.connect("Clumsy10") as clumsy:
                async for message in clumsy.messages():
                    async with message:
                        assert (message.body, message.attempt) == ("careful", 2)
                    break
            await receipt.delivered(PATIENCE_S)

    asyncio.run(main())


# --- many ---------------------------------------------------------------------------------------------------------


def test_topics_channels_and_broadcast(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("A") as a, daemon.connect("B") as b, daemon.connect("C") as c:
            async with b.subscribe("code.>") as feed:
                assert (await a.publish("code.review", "topic")).recipients == 1
                assert (await feed.receive(PATIENCE_S)).topic == "code.review"
            assert (await a.publish("code.review", "nobody")).recipients == 0
            await b.join("#dev")
            await c.join("#dev")
            assert (await b.send("#dev", "channel")).recipients == 1
            assert (await c.receive(PATIENCE_S)).to == "#dev"
            await c.leave("#dev")
            assert (await b.send("#dev", "nobody")).recipients == 0
            receipt = await a.send("*", "everybody")
            for client in (b, c):
                message = await client.receive(PATIENCE_S)
                assert message.body == "everybody"
                await message.ack()
            assert {delivered.by for delivered in await receipt.delivered(PATIENCE_S)} == {"B", "C"}
            with pytest.raises(RelayError) as caught:
                await a.send(["B", "Nobody"], "both or none")
            assert caught.value.code is ErrorCode.AGENT_NOT_FOUND

    asyncio.run(main())


def test_asking_about_the_relay(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("A", cli="claude") as a, daemon.connect("B") as b, daemon.connect(observer=True) as observer:
            receipt = await a.send("B", "find the needle", thread="t1")
            message = await b.receive(PATIENCE_S)
            await message.ack()
            await receipt.delivered(PATIENCE_S)
            view = await observer.agents()
            assert {agent.name: agent.connected for agent in view.agents} == {"A": True, "B": True}
            found = view.find("a")
            assert found is not None
            assert (found.cli, found.meta["pid"] > 0, view.server["accepted"]) == ("claude", True, 1)
            assert [m["message_id"] for m in (await observer.history(search="needle")).messages] == [receipt.message_id]
            assert (await observer.history(with_="A", thread="other")).messages == []
            explained = await observer.message(receipt.message_id)
            assert explained.message["payload"]["body"] == "find the needle"
            assert [step["event"] for step in explained.trail][-1] == "acknowledged"
            with pytest.raises(RelayError) as caught:
                await observer.message("msg_" + "0" * 26)
            assert caught.value.code is ErrorCode.ROUTE_NOT_FOUND

    asyncio.run(main())


def test_a_dead_letter_can_be_sent_again(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("B"):
            pass
        async with daemon.connect("A") as a:
            receipt = await a.send("B", "urgent", ttl_ms=50)
            with pytest.raises(TimedOut) as caught:
                await receipt.delivered(PATIENCE_S)
            assert caught.value.details["to"] == "B"
            (dead,) = (await a.dead_letters()).messages
            assert dead["message_id"] == receipt.message_id
            async with daemon.connect("B") as b:
                new_id = await a.retry_dead_letter(receipt.message_id)
                message = await b.receive(PATIENCE_S)
                assert (message.body, message.id) == ("urgent", new_id)
                await message.ack()
            assert (await a.dead_letters()).messages == []

    asyncio.run(main())


def test_a_full_queue_refuses_and_retrying_gets_through() -> None:
    async def main(daemon: DaemonProcess) -> None:
        async with daemon.connect("Sink", max_inflight=1) as sink, daemon.connect("A") as a:
            told = []
            a.on_busy = told.append
            with pytest.raises(RelayError) as caught:  # noqa: PT012
                for n in range(50):
                    await a.send("Sink", str(n))
            assert caught.value.code is ErrorCode.QUEUE_FULL
            assert caught.value.retry_after_ms is not None
            await until(lambda: "Sink" in a.backpressure)
            retrying = asyncio.create_task(a.send("Sink", "last", retry_for=PATIENCE_S))
            bodies = []
            async for message in sink.messages():
                bodies.append(message.body)
                if message.body == "last":
                    await message.ack()
                    break
            await retrying
            assert bodies == [*map(str, range(len(bodies) - 1)), "last"]
            await until(lambda: not a.backpressure)
            assert told[-1].cleared

    with DaemonProcess("--queue-capacity=5") as daemon:
        asyncio.run(main(daemon))


def test_a_new_agent_is_in_general_until_it_leaves(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("A") as a, daemon.connect("B") as b:
            async with daemon.connect("Quiet", default_channels=False):
                assert (await a.send("#general", "good morning")).recipients == 1
            async with await b.receive(PATIENCE_S) as message:
                assert (message.to, message.body) == ("#general", "good morning")
            await b.leave("#general")
        daemon.restart()
        async with daemon.connect("A") as a, daemon.connect("B") as b:
            assert {channel.name: channel.members for channel in await a.channels()} == {"#general": ("A",)}
            await b.join("#general", agent="Quiet")
            assert (await a.send("#general", "again")).queued == 1

    asyncio.run(main())


def test_waiting_for_the_delivery_and_for_an_answer_have_one_word_each(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Alice50") as alice, shared.connect("Bob50") as bob:
            with pytest.raises(TimedOut) as late:
                await alice.send("Bob50", "hello", wait=0.05)
            assert (await alice.message(late.value.details["message_id"])).message["client_id"]
            answering = asyncio.create_task(answer(bob, lambda message: message.reply(f"{message.body}!")))
            receipt = await alice.send("Bob50", "now", wait=PATIENCE_S)
            assert receipt.recipients == 1
            reply = await alice.send("Bob50", "ready?", reply=PATIENCE_S)
            assert (reply.by, reply.body) == ("Bob50", "ready?!")
            answering.cancel()

    asyncio.run(main())


# --- names and endings --------------------------------------------------------------------------------------------


def test_a_name_in_use_is_refused_and_the_token_takes_it_over(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("A") as first:
            with pytest.raises(RelayError) as caught:
                async with daemon.connect("a"):
                    pass
            assert caught.value.details["reason"] == "name_in_use"
            async with daemon.connect("A", resume_token=first.resume_token) as second:
                with pytest.raises(ConnectionLost) as lost:
                    await first.receive(PATIENCE_S)
                assert lost.value.details == {"reason": "superseded"}
                assert second.session_id == first.session_id

    asyncio.run(main())


def test_a_daemon_that_stops_is_waited_for_and_its_end_is_said(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("A", backoff=QUICK, reconnect_attempts=None) as a:
            session = a.session_id
            assert await asyncio.to_thread(daemon.terminate) == 0
            await until(lambda: a.state is not ClientState.READY)
            with pytest.raises(DaemonNotRunning):
                await daemon.connect("B").connect()
            sending = asyncio.create_task(a.send("A", "to myself, later"))
            await asyncio.to_thread(daemon.start)
            await sending
            assert a.session_id == session
            assert (await a.receive(PATIENCE_S)).body == "to myself, later"

    asyncio.run(main())


def test_giving_up_is_final_and_typed(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("A", backoff=QUICK, reconnect_attempts=2) as a:
            await asyncio.to_thread(daemon.kill)
            with pytest.raises(ConnectionLost, match="agent-relay up"):
                await a.send("A", "nobody home")

    asyncio.run(main())


# --- kill -9 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kill_after", [1, 100, 250, 400])
def test_500_messages_over_a_kill_arrive_exactly_once_in_order(daemon: DaemonProcess, kill_after: int) -> None:
    async def main() -> None:
        received: list[str] = []
        accepted: list[str] = []
        enough = asyncio.Event()
        options = {"backoff": QUICK, "reconnect_attempts": None}
        async with daemon.connect("Alice", **options) as alice, daemon.connect("Bob", **options) as bob:

            async def read() -> None:
                async for message in bob.messages():
                    received.append(message.body)
                    if len(received) == kill_after:
                        enough.set()

            async def send() -> None:
                receipts = []
                for n in range(500):
                    receipts.append(await alice.submit("Bob", str(n)))
                    if n % 5 == 4:
                        await receipts[n - 4]  # so that the kill hits the middle of the sending
                for receipt in receipts:
                    await receipt
                    accepted.append(receipt.message_id)
                for receipt in receipts:
                    await receipt.delivered(PATIENCE_S)

            reading, sending = asyncio.create_task(read()), asyncio.create_task(send())
            await enough.wait()
            daemon.kill()
            assert kill_after <= len(received) < 500
            assert not sending.done()
            await asyncio.to_thread(daemon.start)
            await asyncio.wait_for(sending, 60)
            assert len(accepted) == len(set(accepted)) == 500
            await until_nothing_is_owed(alice, "Bob")
            assert received == [str(n) for n in range(500)]
            reading.cancel()

    asyncio.run(main())


async def until_nothing_is_owed(client: RelayClient, name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            agent = (await client.agents()).find(name)
            if agent is not None and not agent.inflight and not agent.queue_depth:
                return


def test_a_question_survives_a_kill(daemon: DaemonProcess) -> None:
    async def main() -> None:
        options = {"backoff": QUICK, "reconnect_attempts": None}
        async with daemon.connect("Alice", **options) as alice, daemon.connect("Bob", **options) as bob:
            asking = asyncio.create_task(alice.request("Bob", "ready?", timeout=PATIENCE_S))
            message = await bob.receive(PATIENCE_S)
            await asyncio.to_thread(daemon.restart)
            await message.reply("yes, still")
            assert (await asking).body == "yes, still"

    asyncio.run(main())


def test_a_silent_loss_of_receipts_is_made_good(daemon: DaemonProcess) -> None:
    """Bob acknowledges while Alice is away; a killed daemon has forgotten to tell her; her receipt asks."""

    async def main() -> None:
        options = {"backoff": QUICK, "reconnect_attempts": None}
        async with daemon.connect("Alice", **options) as alice, daemon.connect("Bob", **options) as bob:
            receipt = await alice.send("Bob", "hello")
            message = await bob.receive(PATIENCE_S)
            await message.ack()
            await until_acknowledged(bob, receipt.message_id)
            await asyncio.to_thread(daemon.restart)
            (delivered,) = await receipt.delivered(PATIENCE_S)
            assert delivered.by == "Bob"

    async def until_acknowledged(client: RelayClient, message_id: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while "acknowledged" not in {step["event"] for step in (await client.message(message_id)).trail}:
                await asyncio.sleep(0.01)

    asyncio.run(main())


# --- the blocking twin --------------------------------------------------------------------------------------------


def test_the_blocking_twin_does_the_same(daemon: DaemonProcess) -> None:
    with daemon.connect_sync("Alice") as alice, daemon.connect_sync("Bob") as bob:
        receipt = alice.send("Bob", "hello")
        assert (receipt.recipients, receipt.queued) == (1, 0)
        message = bob.receive(PATIENCE_S)
        assert (message.body, message.from_, message.payload) == ("hello", "Alice", {"body": "hello"})
        message.ack("OK")
        assert [delivered.response for delivered in receipt.delivered(PATIENCE_S)] == ["OK"]
        answering = threading.Thread(target=lambda: bob.receive(PATIENCE_S).reply("yes"))
        answering.start()
        assert alice.request("Bob", "ready?", PATIENCE_S).body == "yes"
        answering.join()
        with bob.subscribe("code.*") as feed:
            alice.publish("code.x", "topic")
            for heard in feed:
                with heard:
                    assert heard.topic == "code.x"
                break
        bob.join("#dev")
        alice.send("#dev", "channel")
        assert bob.receive(PATIENCE_S).body == "channel"
        with pytest.raises(RelayError):
            alice.send("Nobody", "x")
        with pytest.raises(TimedOut):
            bob.receive(0.01)
        assert {agent.name for agent in alice.agents().agents} == {"Alice", "Bob"}
        assert alice.history(with_="Bob", limit=2).next_cursor is not None
        assert alice.message(receipt.message_id).message["message_id"] == receipt.message_id


def test_the_blocking_loop_acknowledges_by_the_same_rules(daemon: DaemonProcess) -> None:
    with daemon.connect_sync("Alice") as alice, daemon.connect_sync("Bob") as bob:
        receipts = [alice.send("Bob", f"m{n}") for n in range(4)]
        for message in bob.messages():
            with message:
                assert message.body == "m0"
            break
        receipts[0].delivered(PATIENCE_S)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            for message in bob.messages():
                assert message.body == "m1"
                _ = 1 // 0
        for message in bob.messages():
            assert message.body == "m1"
            break  # which acknowledges nothing
        with pytest.raises(TimedOut):
            receipts[1].delivered(0.05)
        seen = []
        for message in bob.messages(timeout=PATIENCE_S):
            seen.append(message.body)
            if message.body == "m3":
                message.ack()
                break
        assert seen == ["m1", "m2", "m3"]
        for receipt in receipts:
            receipt.delivered(PATIENCE_S)


def test_the_blocking_twin_serves_many_threads_and_ends_with_them_waiting(daemon: DaemonProcess) -> None:
    seen: list[str] = []
    with daemon.connect_sync("Alice") as alice, daemon.connect_sync("Bob") as bob:

        def read() -> None:
            for message in bob.messages():
                seen.append(message.body)  # noqa: PERF401

        readers = [threading.Thread(target=read) for _ in range(3)]
        writers = [threading.Thread(target=lambda n=n: [alice.send("Bob", f"{n}-{i}") for i in range(30)]) for n in range(4)]  # type: ignore[misc]
        for thread in [*readers, *writers]:
            thread.start()
        for thread in writers:
            thread.join()
        deadline = time.monotonic() + PATIENCE_S
        while len(seen) < 120 and time.monotonic() < deadline:
            time.sleep(0.005)
        bob.close()
        for thread in readers:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    assert sorted(seen) == sorted(f"{n}-{i}" for n in range(4) for i in range(30))
    with pytest.raises(ConnectionLost):
        alice.send("Bob", "too late")


def test_a_blocking_twin_without_a_daemon_says_so_and_leaves_no_thread(daemon: DaemonProcess) -> None:
    daemon.kill()
    before = threading.active_count()
    with pytest.raises(DaemonNotRunning):
        daemon.connect_sync("Alice").connect()
    assert threading.active_count() == before


# --- agents the relay runs ------------------------------------------------------------------------------------------


def test_an_agent_reports_and_is_controlled(shared: DaemonProcess) -> None:
    async def main() -> None:
        async with shared.connect("Alice40") as alice, shared.connect("Bob40", control=True) as bob:
            asked: list[tuple[str, str | None]] = []
            bob.on_control = lambda control: asked.append((control.command, control.text))
            receipt = await alice.send("Bob40", "hello")
            message = await bob.receive(PATIENCE_S)
            bob.report("message.received", messageId=message.id)
            await message.ack(door="typing", evidence="composer")
            bob.report("message.read", messageId=message.id, evidence="transcript")
            bob.report("agent.state", state="waiting", waitingFor="a permission", paused=True)
            (one,) = await receipt.delivered(PATIENCE_S)
            assert (one.by, one.door, one.evidence) == ("Bob40", "typing", "composer")
            assert await alice.control("bob40", "input", "yes\n") == "Bob40"
            assert await alice.control("Bob40", "pause") == "Bob40"
            await until(lambda: len(asked) == 2)
            assert asked == [("input", "yes\n"), ("pause", None)]
            with pytest.raises(RelayError) as caught:
                await alice.control("Alice40", "pause")
            assert caught.value.code is ErrorCode.FEATURE_UNSUPPORTED
            with pytest.raises(RelayError) as refused:
                await bob.control("Alice40", "pause")
            assert (refused.value.code, refused.value.details["reason"]) == (ErrorCode.PERMISSION_DENIED, "inside_agent")
            found = (await alice.agents()).find("Bob40")
            assert found is not None
            assert (found.state, found.waiting_for, found.paused) == ("waiting", "a permission", True)
            async with asyncio.timeout(PATIENCE_S):
                while [step["event"] for step in (await alice.message(message.id)).trail][-1] != "read":
                    await asyncio.sleep(0.005)

    asyncio.run(main())


def test_a_state_is_told_again_to_a_daemon_that_comes_back(daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("Bob", backoff=QUICK) as bob, daemon.connect("Watcher", backoff=QUICK) as watcher:
            bob.report("agent.state", state="waiting", door="typing")
            daemon.kill()
            daemon.start()
            async with asyncio.timeout(PATIENCE_S):
                while (found := (await watcher.agents()).find("Bob")) is None or found.door != "typing":
                    await asyncio.sleep(0.005)
            assert found.state == "waiting"

    asyncio.run(main())


def test_the_blocking_twin_reports_and_controls(shared: DaemonProcess) -> None:
    with shared.connect_sync("Alice41") as alice, shared.connect_sync("Bob41", control=True) as bob:
        paused = threading.Event()

        def obey(control: ControlPayload) -> None:
            bob.report("agent.state", state="idle", paused=control.command == "pause")
            paused.set()

        bob.client.on_control = obey
        receipt = alice.send("Bob41", "hello")
        bob.receive(PATIENCE_S).ack(door="typing")
        assert receipt.delivered(PATIENCE_S)[0].door == "typing"
        assert alice.control("Bob41", "pause") == "Bob41"
        assert paused.wait(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while (found := alice.agents().find("Bob41")) is None or not found.paused:
            assert time.monotonic() < deadline, found
