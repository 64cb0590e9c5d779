"""Redis Streams over RESP: added with confirmation, read by a consumer group, acknowledged.

A lean client on purpose, as for NATS. One stream, one group with one consumer; a message is an entry with one field. Entries are
read as many at a time as there are, up to what the relay's recipient may have on the wire, and the acknowledgement of a batch
goes out together with the request for the next one. The last message says that it is the last, in the name of its field: a
request that waits would let the closing PING wait, too.
"""

from __future__ import annotations

import hashlib
import re
import socket
import time
from dataclasses import dataclass

from bench.dialect import BODY_BYTES, FailedRunError, Findings, Scan, Stream, check_counts
from bench.relay_wire import connect_unix

STREAM, GROUP, CONSUMER = "bench", "readers", "reader"
_AT_ONCE = 1_000
_TIMEOUT_S = 10.0
_EOL = b"\r\n"
_PONG = b"+PONG\r\n"
_HEAD = re.compile(rb"\*1\r\n\*2\r\n\$\d+\r\n[a-z]+\r\n\*(\d+)\r\n")
_ENTRY = re.compile(rb"\*2\r\n\$\d+\r\n(\d+-\d+)\r\n\*2\r\n\$1\r\n([ml])\r\n\$\d+\r\n(.{%d})\r\n" % BODY_BYTES)


def encode_command(*words: str | bytes) -> bytes:
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    return b"".join([b"*%d\r\n" % len(parts), *(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)])


_READ = encode_command("XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT", str(_AT_ONCE), "BLOCK", "0", "STREAMS", STREAM, ">")


@dataclass(frozen=True, slots=True)
class RedisDialect:
    path: str

    @property
    def ping(self) -> bytes:
        return encode_command("PING")

    def open_sender(self, _name: str, /) -> socket.socket:
        return connect_unix(self.path)

    def open_receiver(self, _name: str, /) -> socket.socket:
        sock = connect_unix(self.path)
        sock.sendall(_READ)
        return sock

    def encode_messages(self, stream: Stream) -> bytes:
        last = stream.messages - 1
        return b"".join(
            [encode_command("XADD", STREAM, "*", "l" if index == last else "m", stream.body(index)) for index in range(last + 1)]
        )

    def scan_answers(self, buffer: bytes) -> Scan:
        start, count, pongs = 0, 0, 0
        while (eol := buffer.find(_EOL, start)) >= 0:
            if buffer.startswith(b"$", start):
                eol = buffer.find(_EOL, eol + 2)
                if eol < 0:
                    break
                count += 1
            else:
                pongs += _is_pong(buffer[start : eol + 2])
            start = eol + 2
        return Scan(count, pongs, start, b"")

    def scan_deliveries(self, buffer: bytes) -> Scan:
        start, count, pongs = 0, 0, 0
        replies: list[bytes] = []
        while (eol := buffer.find(_EOL, start)) >= 0:
            if not buffer.startswith(b"*", start):
                pongs += _is_pong(buffer[start : eol + 2])
                start = eol + 2
                continue
            head = _HEAD.match(buffer, start)
            if head is None:
                break
            entries = _read_entries(buffer, head.end(), int(head[1]))
            if entries is None:
                break
            count += len(entries)
            replies.append(encode_command("XACK", STREAM, GROUP, *(entry[1] for entry in entries)))
            if entries[-1][2] == b"m":
                replies.append(_READ)
            start = entries[-1].end()
        return Scan(count, pongs, start, b"".join(replies))

    def check_answers(self, data: bytes, stream: Stream) -> Findings:
        findings = Findings()
        ids = [line.decode() for line in data.split(_EOL) if b"-" in line]
        if ids != sorted(set(ids), key=_read_id):
            findings.note("the ids of the entries do not ascend")
        findings.order.extend(range(len(ids)))
        check_counts(findings, stream, "answered")
        findings.digest = _digest(ids)
        return findings

    def check_deliveries(self, data: bytes, stream: Stream) -> Findings:
        findings, ids = Findings(), []
        for index, entry in enumerate(_ENTRY.finditer(data)):
            if entry[3] != stream.body(index).encode():
                findings.note(f"delivery {index + 1} does not hold that message")
            findings.order.append(index)
            ids.append(entry[1].decode())
        if len(ids) != stream.messages:
            findings.note(f"{len(ids)} deliveries, expected {stream.messages}")
        findings.digest = _digest(ids)
        return findings


def _read_entries(buffer: bytes, start: int, count: int) -> list[re.Match[bytes]] | None:
    """None: they have not all come yet."""
    entries: list[re.Match[bytes]] = []
    while len(entries) < count:
        entry = _ENTRY.match(buffer, start)
        if entry is None:
            return None
        entries.append(entry)
        start = entry.end()
    return entries


def _is_pong(line: bytes) -> bool:
    if line.startswith(b"-"):
        raise FailedRunError(f"Redis refused something: {line[:100].decode(errors='replace')}")
    return line == _PONG


def _read_id(text: str) -> tuple[int, int]:
    moment, _, number = text.partition("-")
    return int(moment), int(number)


def _digest(ids: list[str]) -> str:
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def request(path: str, *words: str) -> bytes:
    """One question whose answer is short."""
    with connect_unix(path) as sock:
        sock.sendall(encode_command(*words))
        answer = sock.recv(65_536)
    if not answer or answer.startswith(b"-"):
        raise FailedRunError(f"Redis refused {words[0]}: {answer[:100].decode(errors='replace')}")
    return answer


def create_stream(path: str) -> None:
    request(path, "XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM")


def check_all_acknowledged(path: str, messages: int) -> list[str]:
    deadline = time.monotonic() + _TIMEOUT_S
    while not (pending := request(path, "XPENDING", STREAM, GROUP)).startswith(b"*4\r\n:0\r\n"):
        if time.monotonic() > deadline:
            return [f"Redis still waits for acknowledgements: {pending[:40]!r}"]
        time.sleep(0.02)
    kept = int(request(path, "XLEN", STREAM)[1:])
    return [] if kept == messages else [f"Redis keeps {kept} of {messages} messages"]
