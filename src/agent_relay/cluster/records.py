"""Records of the log: a batch of the store, a claim of the seat, or the erasure of an agent.

A record is a letter and its content: `B` and msgpack of the batch's rows as tuples, `C` and JSON of the claim, `E` and JSON of
the erasure. A version that cannot read a record stops copying there and goes on as an edge: what it skipped would be missing
once it has the seat. So whatever is new is written only where it is used.

A batch whose record would be too large for one message of the engine becomes several. Their rows together have the order in
which a store writes those of one batch. If the seat is lost in between, nobody has been told about the first parts: their
messages are stored, and a sender that repeats one hears that it is a duplicate. The checkpoint goes with the last part: it
speaks for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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

_BATCH, _CLAIM, _ERASURE = b"B", b"C", b"E"
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
_DIVIDED = (  # in the order in which a store writes them
    "messages", "documents", "forgotten", "agents", "spent_tokens", "subscriptions", "members", "streams", "trail",
    "dead_letters", "backlog_removed", "backlog_added",
)  # fmt: skip
_FRAME_BYTES = 256  # of a record around its rows: the names of its fields, and how many rows each has


def _row_type(kind: type[Struct]) -> Any:
    """The kind's fields as a typed tuple, which the decoder checks in one go."""
    return tuple.__class_getitem__(tuple(field.type for field in msgspec.structs.fields(kind)))


_Fields = msgspec.defstruct(
    "_Fields",
    [
        *((name, list[_row_type(kind)], ()) for name, kind in _ROWS.items()),  # type: ignore[misc]
        ("forgotten", list[str], ()),
        ("backlog_removed", list[tuple[str, int]], ()),
        ("documents", dict[str, bytes], {}),
        ("checkpoint", int | None, None),
    ],
    forbid_unknown_fields=True,
    kw_only=True,
)
_encode = msgspec.msgpack.Encoder().encode
_decode: Any = msgspec.msgpack.Decoder(_Fields).decode


class BadRecord(Exception):  # noqa: N818 - named by the condition
    """A record that this version cannot read. The text says what is wrong."""


class Claim(Struct, frozen=True, omit_defaults=True):
    term: int
    host: str
    mark: str  # of the daemon's life that claims; another one of the same host is somebody else
    leaves: bool = False  # gives the seat back; a version that does not know this waits for a word of that host as always


class Erasure(Struct, frozen=True):
    """Everything of an agent in the records before this one goes out of every copy."""

    agent: str


Record = Batch | Claim | Erasure


def encode_erasure(erasure: Erasure) -> bytes:
    return _ERASURE + msgspec.json.encode(erasure)


def encode_claim(claim: Claim) -> bytes:
    return _CLAIM + msgspec.json.encode(claim)


def encode_batch(batch: Batch) -> bytes:
    fields: dict[str, Any] = {name: [astuple(row) for row in rows] for name in _ROWS if (rows := getattr(batch, name))}
    if batch.forgotten:
        fields["forgotten"] = batch.forgotten
    if batch.backlog_removed:
        fields["backlog_removed"] = batch.backlog_removed
    if batch.documents:
        fields["documents"] = batch.documents
    if batch.checkpoint is not None:
        fields["checkpoint"] = batch.checkpoint
    return _BATCH + _encode(fields)


class Part(NamedTuple):
    batch: Batch
    record: bytes


def divide_batch(batch: Batch, most_bytes: int) -> list[Part]:
    """The whole batch as one part if its record is not larger than that, else as few as it takes. A single row that is larger is
    a part of its own."""
    record = encode_batch(batch)
    if len(record) <= most_bytes:
        return [Part(batch, record)]
    parts, size = [Batch()], _FRAME_BYTES
    for name, row in _list_rows(batch):
        needed = len(_encode(row if isinstance(row, (tuple, str)) else astuple(row)))
        if size > _FRAME_BYTES and size + needed > most_bytes:
            parts.append(Batch())
            size = _FRAME_BYTES
        size += needed
        if name == "documents":
            parts[-1].documents[row[0]] = row[1]
        else:
            getattr(parts[-1], name).append(row)
    parts[-1].checkpoint = batch.checkpoint
    return [Part(part, encode_batch(part)) for part in parts]


def _list_rows(batch: Batch) -> Iterator[tuple[str, Any]]:
    for name in _DIVIDED:
        rows = batch.documents.items() if name == "documents" else getattr(batch, name)
        for row in rows:
            yield name, row


def decode_record(record: bytes) -> Record:
    kind, content = record[:1], record[1:]
    try:
        if kind == _CLAIM:
            return msgspec.json.decode(content, type=Claim)
        if kind == _ERASURE:
            return msgspec.json.decode(content, type=Erasure)
        if kind == _BATCH:
            return _read_batch(_decode(content))
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise BadRecord(f"A record of the cluster's log cannot be read ({error}); update this host's agent-relay.") from None
    raise BadRecord(f"A record of the cluster's log is of the unknown kind {kind!r}; update this host's agent-relay.")


def _read_batch(fields: Any) -> Batch:
    batch = Batch(
        forgotten=list(fields.forgotten), backlog_removed=list(fields.backlog_removed), documents=fields.documents,
        checkpoint=fields.checkpoint,
    )  # fmt: skip
    for name, kind in _ROWS.items():
        if rows := getattr(fields, name):
            setattr(batch, name, [kind(*row) for row in rows])
    return batch
