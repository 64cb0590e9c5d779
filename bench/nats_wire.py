"""NATS JetStream over its own text protocol: published with confirmation, pushed to a durable consumer, acknowledged.

A lean client on purpose: with a general one the client would be measured and not the server. One stream in the file
store, one durable push consumer with explicit acknowledgement; a message is 200 bytes on a subject, its PubAck comes
to an inbox subject that carries the message's number.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.dialect import BODY_BYTES, FailedRunError, Findings, Scan, Stream, check_counts

STREAM, CONSUMER = "BENCH", "reader"
SUBJECT, DELIVER_SUBJECT, INBOX = "bench.messages", "bench.deliver", "_INBOX.bench"
MAX_ACK_PENDING = 1_000  # what the relay's recipient asks for as well
_TIMEOUT_S = 10.0
_CONNECT = b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\nPING\r\n'
_EOL = b"\r\n"


@dataclass(frozen=True, slots=True)
class NatsDialect:
    port: int

    @property
    def ping(self) -> bytes:
        return b"PING\r\n"

    def open_sender(self, _name: str, /) -> socket.socket:
        return connect_nats(self.port, f"SUB {INBOX}.> 1\r\n".encode())

    def open_receiver(self, _name: str, /) -> socket.socket:
        return connect_nats(self.port, f"SUB {DELIVER_SUBJECT} 1\r\n".encode())

    def encode_messages(self, stream: Stream) -> bytes:
        head = f"PUB {SUBJECT} {INBOX}"
        return b"".join(
            [f"{head}.{index:09d} {BODY_BYTES}\r\n{stream.body(index)}\r\n".encode() for index in range(stream.messages)]
        )

    def scan_answers(self, buffer: bytes) -> Scan:
        start, end, count, pongs, reply = 0, len(buffer), 0, 0, b""
        while (eol := buffer.find(_EOL, start)) >= 0:
            if buffer.startswith(b"MSG ", start):
                stop = eol + 4 + int(buffer[buffer.rindex(b" ", start, eol) + 1 : eol])
                if stop > end:
                    break
                count += 1
                start = stop
            else:
                pong, answer = _read_control(buffer[start:eol])
                pongs += pong
                reply += answer
                start = eol + 2
        return Scan(count, pongs, start, reply)

    def scan_deliveries(self, buffer: bytes) -> Scan:
        start, end, count, pongs = 0, len(buffer), 0, 0
        parts: list[bytes] = []
        while (eol := buffer.find(_EOL, start)) >= 0:
            if buffer.startswith(b"MSG ", start):
                _, _, _, reply, size = buffer[start:eol].split(b" ")
                stop = eol + 4 + int(size)
                if stop > end:
                    break
                count += 1
                parts += (b"PUB ", reply, b" 0\r\n\r\n")
                start = stop
            else:
                pong, answer = _read_control(buffer[start:eol])
                pongs += pong
                parts.append(answer)
                start = eol + 2
        return Scan(count, pongs, start, b"".join(parts))

    def check_answers(self, data: bytes, stream: Stream) -> Findings:
        findings = Findings()
        for header, payload in _cut_messages(data):
            answer = json.loads(payload)
            index = int(header[1].rpartition(b".")[2])
            if answer.get("stream") != STREAM or answer.get("seq") != index + 1 or answer.get("duplicate"):
                findings.note(f"message {index} was answered with {answer}")
            findings.order.append(index)
        check_counts(findings, stream, "answered")
        return findings

    def check_deliveries(self, data: bytes, stream: Stream) -> Findings:
        findings = Findings()
        for header, payload in _cut_messages(data):
            index = len(findings.order)
            tries, stream_seq, consumer_seq = header[3].split(b".")[4:7]
            if (int(tries), int(stream_seq), int(consumer_seq)) != (1, index + 1, index + 1):
                findings.note(f"delivery {index + 1} came as try {int(tries)} of {int(stream_seq)}")
            if payload != stream.body(index).encode():
                findings.note(f"delivery {index + 1} does not hold that message")
            findings.order.append(index)
        if len(findings.order) != stream.messages:
            findings.note(f"{len(findings.order)} deliveries, expected {stream.messages}")
        return findings


def _read_control(line: bytes) -> tuple[bool, bytes]:
    """(is it a PONG, what to write back) of a protocol line that is no message."""
    if line.startswith((b"-ERR", b"HMSG")):
        raise FailedRunError(f"the NATS server refused something: {line[:100].decode(errors='replace')}")
    return line == b"PONG", b"PONG\r\n" if line == b"PING" else b""


def _cut_messages(data: bytes) -> Iterator[tuple[list[bytes], bytes]]:
    start = 0
    while (eol := data.find(_EOL, start)) >= 0:
        header = data[start:eol].split(b" ")
        start = eol + 2
        if header[0] == b"MSG":
            size = int(header[-1])
            yield header, data[start : start + size]
            start += size + 2


def connect_nats(port: int, after: bytes = b"") -> socket.socket:
    """A connection that the server has taken; `after` is sent, and taken too, before this returns."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(after.join((_CONNECT, b"PING\r\n")) if after else _CONNECT)
    wanted, data = (2 if after else 1), b""
    while data.count(b"PONG\r\n") < wanted:
        data += _receive(sock)
        if b"-ERR" in data:
            raise FailedRunError("the NATS server refused the connection")
    return sock


def _receive(sock: socket.socket) -> bytes:
    chunk = sock.recv(65_536)
    if not chunk:
        raise FailedRunError("the NATS server closed the connection")
    return chunk


def request(port: int, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    """One question to the JetStream API."""
    with connect_nats(port, b"SUB _INBOX.api 1\r\n") as sock:
        payload = json.dumps(body).encode()
        sock.sendall(f"PUB {subject} _INBOX.api {len(payload)}\r\n".encode() + payload + _EOL)
        data = b""
        while not (found := [payload for _, payload in _cut_messages(data) if payload.endswith(b"}")]):
            data += _receive(sock)
    answer: dict[str, Any] = json.loads(found[0])
    if "error" in answer:
        raise FailedRunError(f"JetStream refused {subject}: {answer['error'].get('description')}")
    return answer


def create_stream(port: int, replicas: int = 1) -> None:
    stream = {"name": STREAM, "subjects": [SUBJECT], "storage": "file", "num_replicas": replicas}
    request(port, f"$JS.API.STREAM.CREATE.{STREAM}", stream)
    consumer = {
        "durable_name": CONSUMER,
        "deliver_subject": DELIVER_SUBJECT,
        "ack_policy": "explicit",
        "max_ack_pending": MAX_ACK_PENDING,
    }
    request(port, f"$JS.API.CONSUMER.CREATE.{STREAM}.{CONSUMER}", {"stream_name": STREAM, "config": consumer})


def check_all_acknowledged(port: int, messages: int) -> list[str]:
    """Acknowledgements are taken in the background: waits until the consumer has none outstanding."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        info = request(port, f"$JS.API.CONSUMER.INFO.{STREAM}.{CONSUMER}", {})
        if info["num_ack_pending"] == 0 and info["ack_floor"]["stream_seq"] == messages and not info["num_redelivered"]:
            return []
        if time.monotonic() > deadline:
            return [f"JetStream still waits for {info['num_ack_pending']} acknowledgements"]
        time.sleep(0.02)
