"""A blocking client that speaks raw frames, for tests of a daemon as it really runs.

It shares no code with the protocol package on purpose: a mistake there must not be able to hide itself here. Frames
are plain dictionaries, so a test can send what no proper client would. Every wait has a deadline. A frame nobody has
asked for yet stays in `unclaimed`, in order of arrival, so a test never depends on whether an ACK or a DELIVER came first.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any

Frame = dict[str, Any]

DEADLINE_SECONDS = 10.0  # how long something that must happen may take on a loaded machine
QUIET_SECONDS = 0.15  # how long to listen before believing that something does not happen
CHUNK_BYTES = 262_144
# Everything on: a test switches off what it is about.
CAPABILITIES: dict[str, Any] = {
    "ack": True, "resume": True, "max_inflight": 256, "supports_topics": True, "sync": True, "backpressure": True,
    "checksums": True, "sequences": True, "priorities": True, "channels": True,
}  # fmt: skip

_numbers = itertools.count(1)


class Unexpected(AssertionError):  # noqa: N818 - named by the condition
    """The daemon did not say what it was expected to say."""


def encode(content: object) -> bytes:
    """One frame: the bytes as they are, or anything else as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
    return struct.pack(">I", len(body)) + body


def fresh_id() -> str:
    return f"c-{os.getpid()}-{next(_numbers)}"


def envelope(kind: str, payload: Any, **fields: Any) -> Frame:
    return {"v": 2, "type": kind, "id": fresh_id(), "ts": int(time.time() * 1000), "payload": payload, **fields}


def answers(frame: Frame, request_id: str) -> bool:
    """True if the frame names the request in the way of its type."""
    payload = frame["payload"]
    return request_id in (payload.get("ack_id"), payload.get("nack_id"), payload.get("reply_to"))


class RawClient:
    """One connection. Use it as a context manager, or `close` it."""

    def __init__(self, socket_path: str, on_frame: Callable[[Frame], None] | None = None) -> None:
        self.unclaimed: list[Frame] = []
        self.ended = False  # the daemon closed the connection
        self.name = ""
        self.welcome: dict[str, Any] = {}  # the payload of the last WELCOME or SYNC
        self.auto_pong = True
        self.auto_ack = False
        self.largest_frame_bytes = 0
        self._on_frame = on_frame
        self._buffer = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(DEADLINE_SECONDS)
            self._socket.connect(socket_path)
            self._socket.setblocking(False)
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Goes without a word, as a killed client does."""
        self._socket.close()
        self.ended = True

    @property
    def token(self) -> str:
        return str(self.welcome["resume_token"])

    # --- out -----------------------------------------------------------------------------------------------------

    def write(self, data: bytes, *, reading: bool = True) -> bool:
        """Writes it all, reading meanwhile so that neither side can block the other. False: the daemon closed."""
        view, deadline = memoryview(data), time.monotonic() + 2 * DEADLINE_SECONDS
        while view and not self.ended:
            readable, writable, _ = select.select([self._socket] if reading else [], [self._socket], [], 0.5)
            if readable:
                self._receive()
            if writable:
                try:
                    view = view[self._socket.send(view[:CHUNK_BYTES]) :]
                except BlockingIOError:
                    continue
                except OSError:
                    self.wait_closed()
            elif time.monotonic() > deadline:
                raise Unexpected(f"the daemon took no bytes from {self.name or 'a client'}")
        return not view

    def write_frame(self, frame: Frame) -> str:
        self.write(encode(frame))
        return str(frame.get("id"))

    def say(self, kind: str, payload: Any, **fields: Any) -> str:
        """Sends one envelope; returns its id."""
        return self.write_frame(envelope(kind, payload, **fields))

    def message(
        self, to: Any = None, body: Any = "x", *, topic: str | None = None, meta: Any = None, payload: Any = None, **fields: Any
    ) -> Frame:
        """A SEND that is not sent yet; `payload` holds further fields beside the body."""
        optional = {"to": to, "topic": topic, "payload_meta": meta}
        given = {name: value for name, value in optional.items() if value is not None}
        return envelope("SEND", {"body": body, **(payload or {})}, **given, **fields)

    def send(self, to: Any = None, body: Any = "x", **options: Any) -> str:
        return self.write_frame(self.message(to, body, **options))

    def send_stored(self, to: Any = None, body: Any = "x", **options: Any) -> dict[str, Any]:
        """Sends and waits for the `stored` ACK; returns its payload."""
        return self.stored(self.send(to, body, **options))

    def ack(self, deliver: Frame, **more: Any) -> str:
        return self.say("ACK", {"ack_id": deliver["id"], "seq": deliver["delivery"]["seq"], **more})

    def nack(self, deliver: Frame, code: str, **more: Any) -> str:
        return self.say("NACK", {"nack_id": deliver["id"], "code": code, **more})

    # --- in ------------------------------------------------------------------------------------------------------

    def take(self, match: Callable[[Frame], bool], timeout: float = DEADLINE_SECONDS) -> Frame | None:
        """The first frame that matches, in order of arrival; the others stay unclaimed. None: none came."""
        deadline, looked_at = time.monotonic() + timeout, 0
        self._cut()
        while True:
            while looked_at < len(self.unclaimed):
                if match(self.unclaimed[looked_at]):
                    return self.unclaimed.pop(looked_at)
                looked_at += 1
            left = deadline - time.monotonic()
            if self.ended or left <= 0:
                return None
            self._wait(left)

    def expect(
        self, *kinds: str, where: Callable[[Frame], bool] | None = None, timeout: float = DEADLINE_SECONDS, what: str = ""
    ) -> Frame:
        """The next frame of one of these types (and for which `where` holds)."""
        frame = self.take(lambda f: f["type"] in kinds and (where is None or where(f)), timeout)
        if frame is None:
            state = "the connection was closed" if self.ended else f"none within {timeout:g} s"
            seen = [(f["type"], f["payload"]) for f in self.unclaimed[-4:]]
            raise Unexpected(f"{self.name}: no {what or ' or '.join(kinds)} ({state}); unclaimed: {str(seen)[:600]}")
        return frame

    def next_frame(self, timeout: float = DEADLINE_SECONDS) -> Frame:
        frame = self.take(lambda _: True, timeout)
        if frame is None:
            raise Unexpected(f"{self.name}: no frame came ({'closed' if self.ended else 'silence'})")
        return frame

    def listen(self, seconds: float, *kinds: str) -> list[Frame]:
        """Everything of these types (all, if none is named) that is here or arrives within that time."""
        deadline = time.monotonic() + seconds
        self._cut()
        while not self.ended and self._wait(deadline - time.monotonic()):
            pass  # the last look costs no time: what has arrived is seen even if there is none left
        found = [frame for frame in self.unclaimed if not kinds or frame["type"] in kinds]
        self.unclaimed = [frame for frame in self.unclaimed if kinds and frame["type"] not in kinds]
        return found

    def expect_none(self, *kinds: str, seconds: float = QUIET_SECONDS) -> None:
        """Nothing of these types, neither among what a PING flushes out nor a little later."""
        if not self.ended:
            self.flush()
        found = self.listen(seconds, *kinds)
        if found:
            raise Unexpected(f"{self.name}: unexpected {found[0]['type']} {str(found[0])[:400]}")

    def wait_closed(self, timeout: float = DEADLINE_SECONDS) -> None:
        """Reads until the daemon has closed the connection."""
        deadline = time.monotonic() + timeout
        while not self.ended:
            if (left := deadline - time.monotonic()) <= 0:
                raise Unexpected(f"{self.name or 'the connection'} is still open after {timeout:g} s")
            self._wait(left)

    # --- conversations -------------------------------------------------------------------------------------------

    def hello_frame(
        self, name: Any, *, version: Any = 2, token: str | None = None, capabilities: dict[str, Any] | None = None, **payload: Any
    ) -> Frame:
        """A HELLO that is not sent yet; `capabilities` go over the defaults."""
        content: dict[str, Any] = {"agent": name, "cli": "raw", "capabilities": {**CAPABILITIES, **(capabilities or {})}}
        if version is not None:
            content["version"] = version
        if token is not None:
            content["session"] = {"resume_token": token}
        return envelope("HELLO", {**content, **payload})

    def greet(self, name: Any, **options: Any) -> Frame:
        """HELLO, and the first answer to it, whatever it is."""
        self.write_frame(self.hello_frame(name, **options))
        return self._greeted(name, self.expect("WELCOME", "ERROR", "NACK", what=f"answer to HELLO of {name!r}"))

    def hello(self, name: str, **options: Any) -> dict[str, Any]:
        """A HELLO that must succeed; returns WELCOME's payload."""
        return self._must_be("WELCOME", self.greet(name, **options))

    def ask_resume(self, name: str, token: str, streams: Any = (), **payload: Any) -> Frame:
        """RESUME, and the first answer to it, whatever it is."""
        self.say("RESUME", {"agent": name, "resume_token": token, "streams": streams, **payload})
        return self._greeted(name, self.expect("SYNC", "ERROR", "NACK", what=f"answer to RESUME of {name!r}"))

    def resume(self, name: str, token: str, streams: Any = (), **payload: Any) -> dict[str, Any]:
        """A RESUME that must succeed; returns SYNC's payload."""
        return self._must_be("SYNC", self.ask_resume(name, token, streams, **payload))

    def answer(self, request_id: str, *kinds: str) -> Frame:
        """The next frame that answers this request."""
        wanted = kinds or ("ACK", "NACK", "ERROR", "AGENTS", "HISTORY_RESULT")
        return self.expect(*wanted, where=lambda f: answers(f, request_id), what=f"answer to {request_id[:40]}")

    def stored(self, request_id: str) -> dict[str, Any]:
        """The `stored` ACK of a SEND; a refusal in its place is a failure."""
        frame = self.expect(
            "ACK", "NACK", "ERROR", what="stored ACK",
            where=lambda f: answers(f, request_id) and f["payload"].get("stage") != "delivered",
        )  # fmt: skip
        return self._must_be("ACK", frame)

    def delivered(self, request_id: str) -> dict[str, Any]:
        """The next `delivered` ACK of a SEND."""
        payload: dict[str, Any] = self.expect(
            "ACK", what="delivered ACK", where=lambda f: answers(f, request_id) and f["payload"].get("stage") == "delivered"
        )["payload"]
        return payload

    def refused(self, request_id: str, code: str) -> dict[str, Any]:
        """The NACK with this code that answers a request."""
        frame = self.answer(request_id)
        if frame["type"] != "NACK" or frame["payload"].get("code") != code:
            raise Unexpected(f"{self.name}: expected NACK {code}, got {frame['type']} {frame['payload']}")
        payload: dict[str, Any] = frame["payload"]
        return payload

    def deliveries(self, count: int, *, ack: bool = True, timeout: float = DEADLINE_SECONDS) -> list[Frame]:
        """The next so many DELIVERs, acknowledged one by one unless told otherwise."""
        found = []
        for number in range(1, count + 1):
            frame = self.expect("DELIVER", timeout=timeout, what=f"DELIVER {number} of {count}")
            if ack and not self.auto_ack:
                self.ack(frame)
            found.append(frame)
        return found

    def request(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        """A request that must be granted (ACK, AGENTS, HISTORY_RESULT); returns the answer's payload."""
        frame = self.answer(self.say(kind, payload))
        if frame["type"] in ("NACK", "ERROR"):
            raise Unexpected(f"{self.name}: {kind} was refused: {frame['payload']}")
        answer: dict[str, Any] = frame["payload"]
        return answer

    def flush(self) -> None:
        """Returns once the daemon has handled everything sent here before, and what it said until then has arrived."""
        nonce = fresh_id()
        self.say("PING", {"nonce": nonce})
        self.expect("PONG", where=lambda f: f["payload"].get("nonce") == nonce)

    # --- underneath ----------------------------------------------------------------------------------------------

    def _must_be(self, kind: str, frame: Frame) -> dict[str, Any]:
        if frame["type"] != kind:
            raise Unexpected(f"{self.name}: expected {kind}, got {frame['type']} {frame['payload']}")
        payload: dict[str, Any] = frame["payload"]
        return payload

    def _greeted(self, name: Any, frame: Frame) -> Frame:
        if frame["type"] in ("WELCOME", "SYNC"):
            self.name, self.welcome = str(name), frame["payload"]
        return frame

    def _wait(self, seconds: float) -> bool:
        """Waits for bytes; False: none came."""
        if not select.select([self._socket], [], [], max(0.0, seconds))[0]:
            return False
        self._receive()
        self._cut()
        return True

    def _receive(self) -> None:
        try:
            chunk = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._buffer += chunk
        self.ended = not chunk

    def _cut(self) -> None:
        """Moves every complete frame from the buffer to `unclaimed`, answering on the way."""
        replies, start = [], 0
        while len(self._buffer) - start >= 4:
            (length,) = struct.unpack_from(">I", self._buffer, start)
            stop = start + 4 + length
            if stop > len(self._buffer):
                break
            body = bytes(self._buffer[start + 4 : stop])
            start = stop
            self.largest_frame_bytes = max(self.largest_frame_bytes, length)
            frame = self._parse(body)
            replies += [encode(reply) for reply in self._replies(frame)]
            if not (frame["type"] == "PING" and self.auto_pong):
                self.unclaimed.append(frame)
        del self._buffer[:start]
        if replies and not self.ended:
            self.write(b"".join(replies), reading=False)

    def _parse(self, body: bytes) -> Frame:
        try:
            frame = json.loads(body.decode())
        except ValueError as error:
            raise Unexpected(f"the daemon sent a frame that is not UTF-8 JSON: {error}") from error
        if not isinstance(frame, dict) or not isinstance(frame.get("type"), str) or not isinstance(frame.get("payload"), dict):
            raise Unexpected(f"the daemon sent a frame that is no envelope: {body[:200]!r}")
        if self._on_frame is not None:
            self._on_frame(frame)
        return frame

    def _replies(self, frame: Frame) -> Iterable[Frame]:
        if frame["type"] == "PING" and self.auto_pong:
            yield envelope("PONG", {"nonce": frame["payload"].get("nonce")})
        if frame["type"] == "DELIVER" and self.auto_ack:
            yield envelope("ACK", {"ack_id": frame["id"], "seq": frame["delivery"]["seq"]})
