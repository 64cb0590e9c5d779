"""Records of the log: a batch of the store, or a claim of the seat.

A record is a letter and its content: `B` and msgpack of the batch's rows as tuples, or `C` and JSON of the claim. A batch
whose record would be too large for one message of the engine becomes several. Its messages are divided; what else it holds
goes with the last part. If the seat is lost in between, nobody has been told about the first parts: their messages are stored,
and a sender that repeats one hears that it is a duplicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from agent_relay.ports.store import (
    AgentRow,
    BacklogRow,
    Batch,
    DeadLetterRow,
    MemberRow,
    MessageRow,
    SpentToken,
    StreamRow,
    SubscriptionRow,
    TrailRow,
)

FORMAT = "1"  # in the header Relay-Format; whoever does not know it stops following
FORMAT_HEADER = "Relay-Format"

_BATCH, _CLAIM = b"B", b"C"
_ROWS: dict[str, type[Struct]] = {
    "messages": MessageRow,
    "agents": AgentRow,
    "spent_tokens": SpentToken,
    "subscriptions": SubscriptionRow,
    "members": MemberRow,
    "streams": StreamRow,
    "trail": TrailRow,
    "dead_letters": DeadLetterRow,
    "backlog_added": BacklogRow,
}
_ENVELOPE_BYTES = 400  # of one message beside its tail, at most, as a rule of thumb; the rest of a record has a margin


def _row_type(kind: type[Struct]) -> Any:
    """The kind's fields as a typed tuple, which the decoder checks in one go."""
    return tuple.__class_getitem__(tuple(field.type for field in msgspec.structs.fields(kind)))


_Fields = msgspec.defstruct(
    "_Fields",
    [
        *((name, list[_row_type(kind)], ()) for name, kind in _ROWS.items()),  # type: ignore[misc]
        ("forgotten", list[str], ()),
        ("backlog_removed", list[tuple[str, int]], ()),
        ("checkpoint", int | None, None),
    ],
    forbid_unknown_fields=True,
    kw_only=True,
)
_encode = msgspec.msgpack.Encoder().encode
_decode: Any = msgspec.msgpack.Decoder(_Fields).decode


class BadRecord(Exception):  # noqa: N818 - named by the condition
    """A record that this version cannot read. The text says what is wrong."""


class Claim(Struct, frozen=True):
    term: int
    host: str
    mark: str  # of the daemon's life that claims; another one of the same host is somebody else


def encode_claim(claim: Claim) -> bytes:
    return _CLAIM + msgspec.json.encode(claim)


def encode_batch(batch: Batch) -> bytes:
    fields: dict[str, Any] = {name: [astuple(row) for row in rows] for name in _ROWS if (rows := getattr(batch, name))}
    if batch.forgotten:
        fields["forgotten"] = batch.forgotten
    if batch.backlog_removed:
        fields["backlog_removed"] = batch.backlog_removed
    if batch.checkpoint is not None:
        fields["checkpoint"] = batch.checkpoint
    return _BATCH + _encode(fields)


def divide_batch(batch: Batch, most_bytes: int) -> Iterator[Batch]:
    """Parts whose records are not larger than that, the whole batch as one part if it fits. A single message that is larger is
    a part of its own."""
    part: list[MessageRow] = []
    size = 0
    for row in batch.messages:
        needed = len(row.tail) + _ENVELOPE_BYTES + sum(len(name) + 12 for name, _ in row.recipients)
        if part and size + needed > most_bytes:
            yield Batch(messages=part)
            part, size = [], 0
        part.append(row)
        size += needed
    if len(part) == len(batch.messages):
        yield batch
        return
    rest = msgspec.structs.replace(batch, messages=part)
    yield rest


def decode_record(record: bytes) -> Batch | Claim:
    kind, content = record[:1], record[1:]
    try:
        if kind == _CLAIM:
            return msgspec.json.decode(content, type=Claim)
        if kind == _BATCH:
            return _read_batch(_decode(content))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise BadRecord(f"A record of the cluster's log cannot be read: {error}.") from None
    raise BadRecord(f"A record of the cluster's log is of the unknown kind {kind!r}; update this host's agent-relay.")


def _read_batch(fields: Any) -> Batch:
    batch = Batch(forgotten=list(fields.forgotten), backlog_removed=list(fields.backlog_removed), checkpoint=fields.checkpoint)
    for name, kind in _ROWS.items():
        if rows := getattr(fields, name):
            setattr(batch, name, [kind(*row) for row in rows])
    return batch
