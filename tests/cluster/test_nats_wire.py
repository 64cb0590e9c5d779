"""The connection to real NATS servers, when one of them hangs."""

from __future__ import annotations

import asyncio
import signal

from agent_relay.cluster.nats_wire import Credentials, NatsWire
from agent_relay.ports.cluster import WireMessage
from tests.support.nats_servers import run_servers

PATIENCE_S = 90.0
MORE_THAN_SOCKETS_TAKE = 64  # mebibytes


class Notes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, what: str, **fields: object) -> None:
        del fields
        self.notes.append(what)


class Listener:
    def __init__(self) -> None:
        self.servers: list[str] = []
        self.changed = asyncio.Event()

    def connected(self, server: str, max_payload_bytes: int) -> None:
        del max_payload_bytes
        self.servers.append(server)
        self.changed.set()

    def disconnected(self) -> None:
        self.changed.set()

    async def wait_for(self, count: int) -> None:
        while len(self.servers) < count:
            self.changed.clear()
            await self.changed.wait()


def test_a_server_that_hangs_with_much_unwritten_is_left_for_another() -> None:
    async def live() -> None:
        with run_servers(2) as nats:
            notes, listener, heard = Notes(), Listener(), asyncio.Event()
            wire = NatsWire(nats.urls, Credentials(), "test", notes)

            def hear(message: WireMessage) -> None:
                if message.payload == b"after":
                    heard.set()

            wire.subscribe("words", hear)
            await wire.start(listener)
            async with asyncio.timeout(PATIENCE_S):
                await listener.wait_for(1)
                hanging = next(server for server in nats.servers if listener.servers[0].endswith(f":{server.port}"))
                hanging.signal(signal.SIGSTOP)
                try:
                    for _ in range(MORE_THAN_SOCKETS_TAKE):
                        wire.publish("nobody", bytes(1024 * 1024 - 1024))
                    await listener.wait_for(2)
                    assert listener.servers[1] != listener.servers[0]
                    assert not wire.trouble
                    while not heard.is_set():  # said again: what is published while subscriptions are renewed may be lost
                        wire.publish("words", b"after")
                        await asyncio.sleep(0.05)
                finally:
                    hanging.signal(signal.SIGCONT)
            await wire.stop()
            assert "nats_silent" in notes.notes

    asyncio.run(live())


def test_a_message_that_cannot_be_handled_ends_nothing() -> None:
    async def live() -> None:
        with run_servers(1) as nats:
            notes, listener, heard = Notes(), Listener(), asyncio.Event()
            wire = NatsWire(nats.urls, Credentials(), "test", notes)

            def hear(message: WireMessage) -> None:
                if message.payload == b"good":
                    heard.set()
                else:
                    raise ValueError("on purpose")

            wire.subscribe("words", hear)
            await wire.start(listener)
            async with asyncio.timeout(PATIENCE_S):
                await listener.wait_for(1)
                wire.publish("words", b"bad")
                wire.publish("words", b"good")
                await heard.wait()
            assert not wire.trouble
            await wire.stop()
            assert "nats_message_failed" in notes.notes

    asyncio.run(live())
