"""Messages and commands of one client, as they come in: read, counted against its limits, and passed on to the relay in order.

Plain messages in a row are read at once and passed on together; everything else is looked at one by one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from agent_relay.ports.relay import ReadSend
from agent_relay.protocol.arc.client_frames import Said, is_command, read_ref, read_said
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem, CloseCode
from agent_relay.protocol.arc.plain_messages import skim_sends
from agent_relay.protocol.arc.translation import make_send
from agent_relay.transports.arc.frames import TEXT
from agent_relay.transports.arc.receipts import make_receipt

if TYPE_CHECKING:
    from agent_relay.transports.arc.connection import ArcConnection
    from agent_relay.transports.arc.hub import Hub

_MOST_REFS = 64
_MOST_REFS_BYTES = 65_536  # as they were written: what they would take once they are read can be thirty times that

_decode = msgspec.json.Decoder().decode


class Incoming:
    __slots__ = ("_connection", "_hub", "_numbers", "_prefix", "_refs", "_refused", "_sends")

    def __init__(self, hub: Hub, connection: ArcConnection) -> None:
        self._hub = hub
        self._connection = connection
        self._prefix = hub.next_prefix()  # of the ids that the relay knows its messages under, each with a number of its own
        self._numbers = count(1)
        self._sends: list[ReadSend] = []  # that are not passed on yet; none at the end of a turn
        self._refs: Refs | None = None  # of the last messages that had one
        self._refused = 0  # messages in a row that were over the limit

    def skim(self, frames: Iterator[tuple[int, bytes]]) -> tuple[int, bytes] | None:
        """Takes plain messages. Returns the next frame that needs a closer look, if there is one."""
        settings = self._hub.settings
        if self._connection.record.rate.is_limited or self._hub.hooks or settings.max_bytes > settings.max_frame_bytes:
            return next(frames, None)
        return skim_sends(frames, TEXT, self._prefix, self._numbers, self._sends)

    def hear(self, text: bytes) -> None:
        try:
            if not text.isascii():
                text.decode()
            said = read_said(text)
            if is_command(said):
                self.pass_on()  # what was said before it is done before it
                self._hub.commands.carry_out(self._connection, said)
                self._end_if_flooded()
            elif self._may_send(said):
                if said.receipt:
                    self._send_asking(said)
                else:
                    self._sends.append(self._make_send(said))
        except UnicodeDecodeError:
            self.pass_on()
            self._connection.end(CloseCode.NOT_UTF8, "Text must be UTF-8.")
        except ArcProblem as problem:
            self.turn_down(problem)

    def turn_down(self, problem: ArcProblem) -> None:
        self._connection.refuse(problem)
        self._end_if_flooded()

    def pass_on(self) -> None:
        """Those are the relay's now."""
        if self._sends:
            self._connection.tell(self._hub.pump.relay.sent, self._sends)
            self._sends.clear()

    def find_ref(self, message_id: str) -> Any:
        return None if self._refs is None else self._refs.find(message_id)

    def _end_if_flooded(self) -> None:
        if self._connection.is_flooded:
            self.pass_on()
            self._connection.end_slow()

    def _may_send(self, said: Said) -> bool:
        connection = self._connection
        wait_ms = connection.record.rate.take(connection.heard_ms)
        if not wait_ms:
            self._refused = 0
            return True
        self._refused += 1
        seconds = max(1, -(-wait_ms // 1000))
        sentence = f"Too many messages: at most {self._hub.settings.describe_rate()}. Try again in {seconds} s."
        connection.refuse(ArcProblem(ArcCode.RATE_LIMIT, sentence, read_ref(said)))
        if self._refused >= self._hub.settings.refusals:
            self.pass_on()  # those were within the limit
            connection.end(CloseCode.RATE_LIMIT, "Too many messages.")
        return False

    def _send_asking(self, said: Said) -> None:
        send, told = self._make_send(said), make_receipt(self._hub, self._connection, said)
        self.pass_on()  # what was said before it comes before it
        self._connection.tell(lambda peer, asked: self._hub.pump.relay.sent_asking(peer, asked[0], told), [send])

    def _make_send(self, said: Said) -> ReadSend:
        client_id = f"{self._prefix}{next(self._numbers)}"
        found = make_send(said, client_id)
        if len(found[2]) > self._hub.settings.max_frame_bytes:
            raise ArcProblem(ArcCode.MESSAGE_TOO_LARGE, "The message is larger than other clients accept.", read_ref(said))
        if len(said.ref):
            self._refs = self._refs or Refs()
            self._refs.keep(client_id, said.ref)
        if self._hub.hooks:
            self._hub.tell_hooks(self._connection, said)
        return found


class Refs:
    """The `ref`s of a client's last messages, for a refusal that comes later than the message.

    By the id that the relay knows it under. Beyond the limits the oldest are forgotten, never the newest."""

    __slots__ = ("_by_id", "_bytes", "_order")

    def __init__(self) -> None:
        self._by_id: dict[str, bytes] = {}
        self._order: deque[str] = deque()
        self._bytes = 0

    def keep(self, message_id: str, ref: Raw) -> None:
        text = bytes(ref)  # a copy of its own: `ref` keeps the whole frame alive
        self._by_id[message_id] = text
        self._order.append(message_id)
        self._bytes += len(text)
        while len(self._order) > _MOST_REFS or (self._bytes > _MOST_REFS_BYTES and len(self._order) > 1):
            self._bytes -= len(self._by_id.pop(self._order.popleft()))

    def find(self, message_id: str) -> Any:
        text = self._by_id.get(message_id)
        return None if text is None else _decode(text)
