"""Plain messages, read at a glance: a text for one recipient, written as most clients write it, and nothing beside it.

They become what `client_frames` and `translation` make of them, byte for byte, in one go for all that follow each other.
What is not plain is left to those two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from agent_relay.protocol.arc.client_frames import UNREADABLE
from agent_relay.protocol.arc.ids import RELAY
from agent_relay.protocol.arc.translation import BODY, is_plain_name

_match_head = re.compile(rb'\{"to": ?\["([a-z0-9*-]+)"\], ?"payload": ?(?=")').match
_decode_text = msgspec.json.Decoder(str).decode


def skim_sends(
    frames: Iterator[tuple[int, bytes]], text_kind: int, prefix: str, numbers: Iterator[int],
    sends: list[tuple[str, str | list[str], bytes, str]],
) -> tuple[int, bytes] | None:  # fmt: skip
    """Adds the plain ones to `sends` (`ports.ReadSend`), up to the first frame that is not plain, which is returned.

    A plain one is a head, a text that is read whole from its first quote to its last, and a brace.
    """
    head, at, to = b"", 1, ""  # of the message before; nothing but an empty frame begins so
    for frame in frames:
        kind, said = frame
        if said[:at] != head:
            to, at = _read_head(said)
            head = said[:at]
        if not to or kind != text_kind or said[-2:] != b'"}':
            return frame
        raw = said[at:-1]
        try:
            body = _decode_text(raw)
        except UNREADABLE:
            return frame
        sends.append((f"{prefix}{next(numbers)}", to, b"".join((BODY, raw, b"}")), body))
    return None


def _read_head(said: bytes) -> tuple[str, int]:
    """The recipient, and the place where the text begins; nobody where it is not plain, or a command."""
    found = _match_head(said)
    to = "" if found is None else found[1].decode()
    return (to, found.end()) if found is not None and to != RELAY and is_plain_name(to) else ("", 1)
