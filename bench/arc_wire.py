"""ARC as a client speaks it: JSON in the frames of a WebSocket, through the daemon or through one of the small relays beside it.

An ARC relay does not answer a message, so a sender follows its recipients instead. While the clock runs, frames are cut by their
lengths and counted; afterwards every one is decoded and held against what was sent.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.dialect import FailedRunError, Findings, Scan, Stream

TIMEOUT_S = 30.0  # a registration is a flush of the disk, and five thousand of them may come at once
_BUFFER_BYTES = 1 << 20
_CLERKS = 32
_SLOT = "#########"  # nine digits of a message's number, put in place after the frame was written once
_TEXT, _CLOSE, _PING, _PONG = 0x81, 0x88, 0x89, 0x8A
_MASKED = 0x80
_MASK = b"\xa5\x5a\xc3\x3c"  # the same for all: what a server does with it does not depend on it


class _Envelope(msgspec.Struct):
    id: str
    to: list[str]
    payload: Any
    from_: str = msgspec.field(name="from", default="")
    stored: bool = False


_decode = msgspec.json.Decoder(_Envelope).decode


@dataclass(frozen=True, slots=True)
class ArcDialect:
    port: int
    registers: bool = True  # False: a small relay, which takes a name for a token

    @property
    def ping(self) -> bytes:
        return encode_frame(_PING, b"bench")

    def open_sender(self, name: str, /) -> socket.socket:
        return self._open(name)

    def open_receiver(self, name: str, /) -> socket.socket:
        return self._open(name)

    def _open(self, name: str) -> socket.socket:
        return open_socket(self.port, register(self.port, name) if self.registers else name)

    def encode_messages(self, stream: Stream) -> bytes:
        to = ["*"] if stream.broadcast else [*stream.recipients]
        content = json.dumps({"to": to, "payload": stream.body(0).replace("000000000", _SLOT)}, separators=(",", ":"))
        pattern = content.replace("%", "%%").replace(_SLOT, "%09d")
        return b"".join([encode_frame(_TEXT, (pattern % index).encode()) for index in range(stream.messages)])

    def scan_answers(self, buffer: bytes) -> Scan:
        found = self.scan_deliveries(buffer)
        if found.frames:
            content = next((content for kind, content in cut_frames(buffer) if kind == _TEXT), b"")
            raise FailedRunError(f"a sender was told {content[:300].decode(errors='replace')}")
        return found

    def scan_deliveries(self, buffer: bytes) -> Scan:
        start, end, count, pongs, reply = 0, len(buffer), 0, 0, b""
        while end - start >= 2:
            begin, stop = _measure(buffer, start)
            if stop > end:
                break
            kind = buffer[start]
            if kind == _TEXT:
                count += 1
            elif kind == _PONG:
                pongs += 1
            elif kind == _PING:
                reply += encode_frame(_PONG, buffer[begin:stop])
            else:
                raise FailedRunError(f"the server sent a frame of kind {kind:#x}: {buffer[begin:stop][:120]!r}")
            start = stop
        return Scan(count, pongs, start, reply)

    def check_answers(self, _data: bytes, _stream: Stream) -> Findings:
        return Findings()  # `scan_answers` has stopped the run if there was any

    def check_deliveries(self, data: bytes, stream: Stream) -> Findings:
        findings, ids = Findings(), []
        for kind, content in cut_frames(data):
            if kind != _TEXT:
                continue
            index = len(findings.order)
            try:
                envelope = _decode(content)
            except msgspec.DecodeError as error:
                findings.note(f"a frame cannot be read: {error}")
                continue
            if envelope.from_ != stream.sender or envelope.payload != stream.body(index) or envelope.stored:
                findings.note(f"delivery {index + 1} from {stream.sender} is not that message: {content[:120]!r}")
            findings.order.append(index)
            ids.append(envelope.id)
        if self.registers and len(set(ids)) != len(ids):
            findings.note(f"{len(ids) - len(set(ids))} messages from {stream.sender} came twice")
        if len(ids) != stream.messages:
            findings.note(f"{len(ids)} deliveries from {stream.sender}, expected {stream.messages}")
        findings.digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()
        return findings


def open_many(dialect: ArcDialect, names: list[str]) -> list[socket.socket]:
    """Agents that are connected. Many at once, so that they share the flushes of the disk."""
    with ThreadPoolExecutor(_CLERKS) as clerks:
        return list(clerks.map(dialect.open_receiver, names))


def register(port: int, name: str) -> str:
    """The token of a new agent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", "/register", json.dumps({"agent_id": name}), {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    if "token" not in answer:
        raise FailedRunError(f"{name} was not registered: {answer}")
    return str(answer["token"])


def open_socket(port: int, token: str) -> socket.socket:
    """A WebSocket that has had its welcome."""
    sock = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    sock.sendall(
        f"GET /arc?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    heard = b""
    while not _has_welcome(heard):
        chunk = sock.recv(65_536)
        heard += chunk
        if not chunk or (len(heard) > 12 and not heard.startswith(b"HTTP/1.1 101")):
            sock.close()
            raise FailedRunError(f"no WebSocket was opened: {heard[:120]!r}")
    return sock


def _has_welcome(heard: bytes) -> bool:
    _, end, rest = heard.partition(b"\r\n\r\n")
    return bool(end) and len(rest) >= 4 and _measure(rest, 0)[1] <= len(rest)


def encode_frame(kind: int, content: bytes) -> bytes:
    size = len(content)
    head = bytes((kind, _MASKED | size)) if size < 126 else bytes((kind, _MASKED | 126)) + size.to_bytes(2)
    mask = int.from_bytes((_MASK * (size // 4 + 1))[:size])
    return head + _MASK + (int.from_bytes(content) ^ mask).to_bytes(size)


def cut_frames(data: bytes) -> Iterator[tuple[int, bytes]]:
    start, end = 0, len(data)
    while end - start >= 2:
        begin, stop = _measure(data, start)
        if stop > end:
            return
        yield data[start], data[begin:stop]
        start = stop


def _measure(data: bytes, start: int) -> tuple[int, int]:
    """Where the content of an unmasked frame begins and ends; beyond the data where its head is not whole."""
    size = data[start + 1]
    if size < 126:
        return start + 2, start + 2 + size
    wide = 2 if size == 126 else 8
    begin = start + 2 + wide
    if len(data) < begin:
        return begin, begin
    return begin, begin + int.from_bytes(data[start + 2 : begin])


def read_port(directory: os.PathLike[str]) -> int:
    """Where the daemon with this state directory serves HTTP; raises OSError or ValueError while it does not."""
    with open(os.path.join(directory, "http.json")) as file:
        return int(json.load(file)["url"].rpartition(":")[2])
