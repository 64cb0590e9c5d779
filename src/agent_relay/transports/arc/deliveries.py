"""Messages on their way to clients over ARC: from the rows of the relay into frames.

Nearly all have nothing but a text, which is cut out of the row. Those that several get are encoded once for all of them.
"""

from __future__ import annotations

from collections.abc import Container

from agent_relay.ports.relay import Handed
from agent_relay.ports.store import MessageRow
from agent_relay.protocol.arc.translation import BODY, encode_moment, encode_route, encode_tail
from agent_relay.protocol.encode import encode_tail_head
from agent_relay.transports.arc.frames import LONGEST_MIDDLE, LONGEST_SMALL, WHOLE_TEXT, encode_text, pack_middle

_KEPT_FRAMES = 256  # messages whose frame is kept for their next recipients; all of them are sent within a turn or two
_KEPT_BYTES = 4 * 1024 * 1024
_QUOTE = ord('"')


class Deliveries:
    def __init__(self, arc_names: Container[str]) -> None:
        self._arc_names = arc_names
        self._frames: dict[str, bytes] = {}
        self._frames_bytes = 0

    def encode(self, messages: list[Handed], agent_id: str, opened_ms: int) -> bytes:
        """Whole frames, one after the other, for a client that is here since then.

        A tail that begins as that of a plain message does, and has no quote from there to its last three bytes, is one: its text
        can only end at the first of those, with the braces behind it.
        """
        parts: list[bytes] = []
        frames = self._frames
        sender = to = moment = None  # of the message before, and what is made of them
        begin = route = end = b""
        at = 0
        for row, accepted_ms in messages:
            if accepted_ms < opened_ms:
                parts.append(self._encode_any(row, agent_id, stored=True))
                continue
            message_id = row.id
            if len(row.addressed) > 1:
                parts.append(frames.get(message_id) or self._encode_any(row, agent_id, stored=False))
                continue
            if row.sender != sender or row.target != to:
                sender, to = row.sender, row.target
                begin = encode_tail_head(sender) + BODY + b'"'
                at = len(begin)
                route = encode_route(sender, to) + b'"'
            tail = row.tail
            text = tail[at:-3]
            if tail[:at] != begin or _QUOTE in text:
                parts.append(self._encode_any(row, agent_id, stored=False))
                continue
            if message_id[4:14] != moment:
                moment = message_id[4:14]
                end = b'"' + encode_moment(moment) + b"}"
            content = b"".join((b'{"id":"', message_id.encode(), route, text, end))
            size = len(content)
            if LONGEST_SMALL < size <= LONGEST_MIDDLE:
                parts += (pack_middle(WHOLE_TEXT, 126, size), content)
            else:
                parts.append(encode_text(content))
        return b"".join(parts)

    def _encode_any(self, row: MessageRow, agent_id: str, *, stored: bool) -> bytes:
        """The frame is the same for all who get it live, and made once."""
        sender, to = row.sender, row.target or agent_id  # what is said on a topic is written to nobody
        from_arc = sender in self._arc_names
        found = encode_text(encode_tail(row.id, sender, to, row.topic, row.tail, from_arc=from_arc, stored=stored))
        if len(row.addressed) > 1 and row.target != "" and not stored:
            self._keep(row.id, found)
        return found

    def _keep(self, message_id: str, frame: bytes) -> None:
        if len(self._frames) >= _KEPT_FRAMES or self._frames_bytes >= _KEPT_BYTES:
            self._frames.clear()
            self._frames_bytes = 0
        self._frames[message_id] = frame
        self._frames_bytes += len(frame)
