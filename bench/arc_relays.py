"""One small ARC relay on four implementations of WebSockets, to choose between them and to stand beside the daemon.

`python -m bench.arc_relays KIND` listens on a free port of loopback and prints it. A relay takes what stands in `?token=` for the
agent's name, sends a welcome, and passes on to one name or to all. It stores nothing, limits nothing and checks nothing, so what
it costs is the WebSocket, the JSON and the writing. Each imports what it is made of when it runs, and nothing else.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

import msgspec
import uvloop

from bench.forwarder import READY

_WELCOME = b'{"type":"welcome"}'
_ID = b"msg_01J8ABCDEFGHJKMNPQRSTVWXYZ"  # to make one is not what is compared


class _Said(msgspec.Struct, gc=False):
    to: list[str]
    payload: msgspec.Raw


_decode = msgspec.json.Decoder(_Said).decode
_encode = msgspec.json.Encoder().encode


def translate(sender: str, text: bytes | str) -> tuple[list[str], bytes]:
    said = _decode(text)
    parts = (
        b'{"id":"', _ID, b'","from":"', sender.encode(), b'","to":', _encode(said.to), b',"payload":', said.payload,
        b',"ts":1700000000000}',
    )  # fmt: skip
    return said.to, b"".join(parts)


def choose(peers: dict[str, Any], to: list[str], sender: str) -> list[Any]:
    return [peer for name, peer in peers.items() if name != sender] if to == ["*"] else [peers[name] for name in to]


def name_in(target: str) -> str:
    return parse_qs(target.partition("?")[2])["token"][0]


async def serve_websockets(listener: socket.socket) -> None:
    """The library `websockets` with its own server."""
    from websockets.asyncio.server import ServerConnection, broadcast, serve

    peers: dict[str, ServerConnection] = {}

    async def handle(connection: ServerConnection) -> None:
        assert connection.request is not None
        me = name_in(connection.request.path)
        peers[me] = connection
        await connection.send(_WELCOME, text=True)
        async for text in connection:
            to, envelope = translate(me, text)
            broadcast(choose(peers, to, me), envelope.decode())
        del peers[me]

    async with serve(handle, sock=listener, compression=None, ping_interval=None) as server:
        await server.serve_forever()


async def serve_sansio(listener: socket.socket) -> None:
    """uvicorn with `websockets-sansio`, through ASGI."""
    peers: dict[str, Callable[[dict[str, Any]], Awaitable[None]]] = {}

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        me = name_in("?" + scope["query_string"].decode())
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": _WELCOME.decode()})
        peers[me] = send
        while (message := await receive())["type"] == "websocket.receive":
            to, envelope = translate(me, message["text"])
            text = envelope.decode()
            for peer in choose(peers, to, me):
                await peer({"type": "websocket.send", "text": text})
        del peers[me]

    await _run_uvicorn(handle, listener, "websockets-sansio")


async def serve_picows(listener: socket.socket) -> None:
    import picows  # type: ignore[import-not-found, unused-ignore]

    peers: dict[str, Any] = {}

    class Peer(picows.WSListener):  # type: ignore[misc, unused-ignore]
        def __init__(self, request: Any) -> None:
            self.me = name_in(request.path.decode() if isinstance(request.path, bytes) else request.path)

        def on_ws_connected(self, transport: Any) -> None:
            peers[self.me] = transport
            transport.send(picows.WSMsgType.TEXT, _WELCOME)

        def on_ws_frame(self, _transport: Any, frame: Any) -> None:
            if frame.msg_type == picows.WSMsgType.TEXT:
                to, envelope = translate(self.me, frame.get_payload_as_bytes())
                for peer in choose(peers, to, self.me):
                    peer.send(picows.WSMsgType.TEXT, envelope)

        def on_ws_disconnected(self, _transport: Any) -> None:
            peers.pop(self.me, None)

    server = await picows.ws_create_server(Peer, sock=listener)
    await server.serve_forever()


async def serve_frames(listener: socket.socket) -> None:
    """uvicorn hands over the connection, and frames are read and written by the relay's own reader: what the daemon does."""
    from agent_relay.transports.arc.frames import FrameReader, Kind, accept_key, encode_frame

    peers: dict[str, asyncio.Transport] = {}

    class Peer(asyncio.Protocol):
        def __init__(self, **_: Any) -> None:
            self.me = ""
            self.reader = FrameReader(65_536, 1_048_576)

        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            if not self.me:
                self._upgrade(data)
                return
            for kind, content in self.reader.feed(data):
                if kind == Kind.TEXT:
                    to, envelope = translate(self.me, content)
                    frame = encode_frame(Kind.TEXT, envelope)
                    for peer in choose(peers, to, self.me):
                        peer.write(frame)
                elif kind == Kind.PING:
                    self.transport.write(encode_frame(Kind.PONG, content))

        def _upgrade(self, head: bytes) -> None:
            first, *lines = head.decode().split("\r\n")
            self.me = name_in(first.split(" ")[1])
            key = next(line.partition(": ")[2] for line in lines if line.lower().startswith("sec-websocket-key"))
            self.transport.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
                + accept_key(key.encode()) + b"\r\n\r\n" + encode_frame(Kind.TEXT, _WELCOME)
            )  # fmt: skip
            peers[self.me] = self.transport

        def connection_lost(self, _error: Exception | None) -> None:
            peers.pop(self.me, None)

    async def handle(*_: Any) -> None:
        """There is nothing but WebSockets here."""

    await _run_uvicorn(handle, listener, Peer)


async def _run_uvicorn(handle: Any, listener: socket.socket, sockets: Any) -> None:
    import uvicorn

    config = uvicorn.Config(
        handle, ws=sockets, http="h11", lifespan="off", log_level="critical", ws_per_message_deflate=False, ws_ping_interval=None
    )
    await uvicorn.Server(config).serve(sockets=[listener])


KINDS = {"websockets": serve_websockets, "sansio": serve_sansio, "picows": serve_picows, "frames": serve_frames}


def main(kind: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1_024)
    print(READY, listener.getsockname()[1], flush=True)
    uvloop.run(KINDS[kind](listener))


if __name__ == "__main__":
    main(sys.argv[1])
