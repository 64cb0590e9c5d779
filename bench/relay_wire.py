"""The relay's own protocol, and the same frames through the bare forwarder.

While the clock runs, frames are cut by their lengths and recognised by the bytes they begin with; a frame that begins
otherwise is decoded as JSON, so nothing rests on how the daemon happens to order its fields. Afterwards every frame
is decoded and held against what was sent.
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from bench.dialect import FailedRunError, Findings, Scan, Stream, check_counts

HANDSHAKE_TIMEOUT_S = 10.0
MAX_INFLIGHT = 1_000
_BUFFER_BYTES = 1 << 20
_HEADER_BYTES = 4
_read_length = struct.Struct(">I").unpack_from
_SLOT = "#########"  # nine digits of a message's number, put in place after the frame was encoded once

_STORED = b'{"v":2,"type":"ACK","id":"'
_DELIVER = b'{"v":2,"type":"DELIVER","id":"'
_SEND = b'{"v":2,"type":"SEND","id":"'


class _Payload(msgspec.Struct):
    ack_id: str = ""
    stage: str = ""
    message_id: str = ""
    recipients: int = -1
    queued: int = 0
    duplicate: bool = False
    kind: str = ""
    body: str = ""
    code: str = ""


class _Delivery(msgspec.Struct):
    seq: int = 0
    message_id: str = ""
    attempt: int = 1


class _Frame(msgspec.Struct):
    type: str
    id: str
    payload: _Payload
    from_: str = msgspec.field(name="from", default="")
    delivery: _Delivery | None = None


_decode = msgspec.json.Decoder(_Frame).decode


def encode_frame(kind: str, id_: str, payload: dict[str, Any], **fields: Any) -> bytes:
    envelope = {"v": 2, "type": kind, "id": id_, "ts": int(time.time() * 1000), **fields, "payload": payload}
    body = json.dumps(envelope, separators=(",", ":")).encode()
    return struct.pack(">I", len(body)) + body


def cut_frames(data: bytes) -> Iterator[bytes]:
    start, end = 0, len(data)
    while start < end:
        (length,) = _read_length(data, start)
        yield data[start + _HEADER_BYTES : start + _HEADER_BYTES + length]
        start += _HEADER_BYTES + length


def open_agent(path: str, name: str) -> socket.socket:
    """A connection whose handshake is over."""
    sock = connect_unix(path)
    capabilities = {"ack": True, "sequences": True, "max_inflight": MAX_INFLIGHT}
    sock.sendall(encode_frame("HELLO", f"hello-{name}", {"agent": name, "version": 2, "capabilities": capabilities}))
    answer = json.loads(_read_one_frame(sock))
    if answer.get("type") != "WELCOME":
        raise FailedRunError(f"{name} was not welcomed: {answer.get('type')} {answer.get('payload', {}).get('code', '')}")
    return sock


def connect_unix(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(HANDSHAKE_TIMEOUT_S)
    try:
        sock.connect(path)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    except OSError:
        sock.close()
        raise
    return sock


def _read_one_frame(sock: socket.socket) -> bytes:
    (length,) = _read_length(_read_exactly(sock, _HEADER_BYTES))
    return _read_exactly(sock, length)


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            raise FailedRunError("the server closed the connection during the handshake")
        data += chunk
    return data


@dataclass(frozen=True, slots=True)
class RelayDialect:
    path: str

    @property
    def ping(self) -> bytes:
        return encode_frame("PING", "bench-ping", {"nonce": "bench"})

    def open_sender(self, name: str, /) -> socket.socket:
        return open_agent(self.path, name)

    def open_receiver(self, name: str, /) -> socket.socket:
        return open_agent(self.path, name)

    def encode_messages(self, stream: Stream) -> bytes:
        to = "*" if stream.broadcast else stream.recipients[0]
        frame = encode_frame("SEND", "m-" + _SLOT, {"kind": "message", "body": stream.body(0).replace("000000000", _SLOT)}, to=to)
        pattern = frame.replace(b"%", b"%%").replace(_SLOT.encode(), b"%09d")
        return b"".join([pattern % (index, index) for index in range(stream.messages)])

    def scan_answers(self, buffer: bytes) -> Scan:
        start, end, count, pongs, reply = 0, len(buffer), 0, 0, b""
        while end - start >= _HEADER_BYTES:
            stop = start + _HEADER_BYTES + _read_length(buffer, start)[0]
            if stop > end:
                break
            if buffer.startswith(_STORED, start + _HEADER_BYTES):
                count += 1
            else:
                frame = _decode_any(buffer[start + _HEADER_BYTES : stop])
                count += frame["type"] in ("ACK", "NACK")
                pongs += frame["type"] == "PONG"
                reply += _pong_for(frame)
            start = stop
        return Scan(count, pongs, start, reply)

    def scan_deliveries(self, buffer: bytes) -> Scan:
        return _scan_incoming(buffer, _DELIVER, "DELIVER")

    def check_answers(self, data: bytes, stream: Stream) -> Findings:
        findings, ids = Findings(), [""] * stream.messages
        expected = len(stream.recipients)
        for frame in _decoded(data, findings):
            answer = frame.payload
            if frame.type == "NACK":
                findings.note(f"a message of {stream.sender} was refused: {answer.code}")
            elif frame.type != "ACK":
                findings.note(f"{stream.sender} was sent {frame.type}, which nobody asked for")
            elif answer.stage != "stored" or answer.duplicate or answer.queued or answer.recipients != expected:
                findings.note(f"{stream.sender} was told {answer}: expected stored for {expected} connected recipients")
            elif (index := _index_of(answer.ack_id, stream)) is None:
                findings.note(f"{stream.sender} was answered about {answer.ack_id}, which it never sent")
            else:
                findings.order.append(index)
                ids[index] = answer.message_id
        check_counts(findings, stream, "answered")
        findings.digest = _digest(ids)
        return findings

    def check_deliveries(self, data: bytes, stream: Stream) -> Findings:
        findings, ids, delivery_ids = Findings(), [], set()
        for frame in _decoded(data, findings):
            index = len(findings.order)
            if frame.type != "DELIVER" or frame.delivery is None:
                findings.note(f"a recipient was sent {frame.type}, which nobody asked for")
                continue
            seq, attempt = frame.delivery.seq, frame.delivery.attempt
            if (seq, attempt, frame.from_) != (index + 1, 1, stream.sender):
                findings.note(
                    f"delivery {index + 1} from {stream.sender} came as seq {seq}, attempt {attempt}, from {frame.from_}"
                )
            if frame.payload.body != stream.body(index):
                findings.note(f"delivery {index + 1} from {stream.sender} does not hold that message: {frame.payload.body[:14]}")
            findings.order.append(index)
            ids.append(frame.delivery.message_id)
            delivery_ids.add(frame.id)
        if len(delivery_ids) != len(ids):
            findings.note(f"{len(ids) - len(delivery_ids)} delivery ids were used twice")
        if len(ids) != stream.messages:
            findings.note(f"{len(ids)} deliveries from {stream.sender}, expected {stream.messages}")
        findings.digest = _digest(ids)
        return findings


@dataclass(frozen=True, slots=True)
class ForwarderDialect(RelayDialect):
    """The recipient answers the SEND itself, and its ACK travels back to the sender: no daemon in between."""

    @property
    def ping(self) -> bytes:
        return b""

    def open_sender(self, _name: str, /) -> socket.socket:
        return connect_unix(self.path)

    def open_receiver(self, _name: str, /) -> socket.socket:
        return connect_unix(self.path)

    def scan_deliveries(self, buffer: bytes) -> Scan:
        return _scan_incoming(buffer, _SEND, "SEND")

    def check_answers(self, data: bytes, stream: Stream) -> Findings:
        findings = Findings()
        for frame in _decoded(data, findings):
            index = _index_of(frame.payload.ack_id, stream)
            if frame.type != "ACK" or index is None:
                findings.note(f"{stream.sender} was sent {frame.type} for {frame.payload.ack_id}")
            else:
                findings.order.append(index)
        check_counts(findings, stream, "answered")
        return findings

    def check_deliveries(self, data: bytes, stream: Stream) -> Findings:
        findings = Findings()
        for frame in _decoded(data, findings):
            index = len(findings.order)
            if (frame.type, frame.id, frame.payload.body) != ("SEND", f"m-{index:09d}", stream.body(index)):
                findings.note(f"delivery {index + 1} through the forwarder is {frame.type} {frame.id}")
            findings.order.append(index)
        if len(findings.order) != stream.messages:
            findings.note(f"{len(findings.order)} deliveries through the forwarder, expected {stream.messages}")
        return findings


def _scan_incoming(buffer: bytes, mark: bytes, kind: str) -> Scan:
    """Messages become acknowledgements; the id of each stands right behind the mark."""
    start, end, count, pongs = 0, len(buffer), 0, 0
    parts: list[bytes] = []
    skip = _HEADER_BYTES + len(mark)
    while end - start >= _HEADER_BYTES:
        stop = start + _HEADER_BYTES + _read_length(buffer, start)[0]
        if stop > end:
            break
        if buffer.startswith(mark, start + _HEADER_BYTES):
            count += 1
            id_ = buffer[start + skip : buffer.index(b'"', start + skip)]
            parts += (_ACK_HEADS[len(id_)], id_, _ACK_MIDDLE, id_, _ACK_END)
        else:
            frame = _decode_any(buffer[start + _HEADER_BYTES : stop])
            if frame["type"] == kind:
                count += 1
                parts.append(encode_frame("ACK", f"a-{frame['id']}", {"ack_id": frame["id"]}))
            pongs += frame["type"] == "PONG"
            parts.append(_pong_for(frame))
        start = stop
    return Scan(count, pongs, start, b"".join(parts))


def _ack_parts() -> tuple[tuple[bytes, ...], bytes, bytes]:
    """An ACK around an id that appears twice: the beginnings by the length of the id, the middle, the end."""
    begin, middle, end = encode_frame("ACK", "a-" + _SLOT, {"ack_id": _SLOT})[_HEADER_BYTES:].split(_SLOT.encode())
    fixed = len(begin) + len(middle) + len(end)
    return tuple(struct.pack(">I", fixed + 2 * length) + begin for length in range(129)), middle, end


_ACK_HEADS, _ACK_MIDDLE, _ACK_END = _ack_parts()


def _decode_any(frame: bytes) -> dict[str, Any]:
    found = json.loads(frame)
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise FailedRunError("the server sent a frame that is no envelope")
    return found


def _pong_for(frame: dict[str, Any]) -> bytes:
    return encode_frame("PONG", "bench-pong", frame["payload"]) if frame["type"] == "PING" else b""


def _decoded(data: bytes, findings: Findings) -> Iterator[_Frame]:
    """The frames of a connection but those that only keep it alive."""
    for raw in cut_frames(data):
        try:
            frame = _decode(raw)
        except msgspec.DecodeError as error:
            findings.note(f"a frame cannot be read: {error}")
            continue
        if frame.type not in ("PING", "PONG"):
            yield frame


def _index_of(id_: str, stream: Stream) -> int | None:
    prefix, _, digits = id_.partition("-")
    if prefix == "m" and digits.isdecimal() and int(digits) < stream.messages:
        return int(digits)
    return None


def _digest(ids: list[str]) -> str:
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()
