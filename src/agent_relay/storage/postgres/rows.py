"""Rows of the port into the arguments of `write_batches`, and back out of what is read.

PostgreSQL has no NUL character. Our texts may have one, so it is written with another one before it. Its own parsers of words
take `auth.py` for a host name and drop what they hold for unimportant, so words are taken apart here, as everywhere in this room.
The index only says which messages have all the parts somewhere; `words.words_occur` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict, astuple

from agent_relay.ports.store import (
    AgentRow,
    Batch,
    DeadLetterRow,
    MemberRow,
    MessageRow,
    SpentToken,
    StreamRow,
    SubscriptionRow,
    TrailRow,
)
from agent_relay.protocol.names import fold_name
from agent_relay.storage.words import MAX_WORD_LENGTH, body_of, split_parts

_MARK, _NUL = "\x01", "\x00"
_MOST_BYTES = 900_000  # of the words of one message; PostgreSQL takes 1 MiB. Later ones of a longer list are not found.
DAY_NUMBERS = 86_400_000 << 20  # a partition: as `day_width` in the schema

MESSAGE_COLUMNS = ", ".join(f"m.{name}" for name in MessageRow.__struct_fields__)
TRAIL_COLUMNS = ", ".join(f"t.{name}" for name in TrailRow.__struct_fields__)

Row = Any  # a record of the driver: values by column

_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_decode_recipients = msgspec.json.Decoder(tuple[tuple[str, int], ...]).decode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode

_NO_COLUMNS: tuple[list[Any], ...] = tuple([] for _ in range(19))


def day_of(number: int) -> int:
    return number // DAY_NUMBERS


def lay_out_messages(rows: list[MessageRow]) -> tuple[list[Any], ...]:
    """The columns of `messages`, and those of `message_agents`, in the order the function takes them."""
    if not rows:
        return _NO_COLUMNS
    (
        number, id_, sender, client_id, target, topic, kind, thread, ts, expires_at, priority, queued, skipped, recipients, tail,
    ) = zip(*map(astuple, rows), strict=True)  # fmt: skip
    ids = escape_column(client_id)
    return (
        list(number), list(ts), list(expires_at), list(priority), list(queued), escape_column(id_), list(sender), ids,
        escape_column(target), escape_column(topic), escape_column(kind), escape_column(thread),
        [_encode(names).decode() if names else None for names in skipped],
        _encode_lines(recipients).decode().split("\n")[:-1], list(tail), [" ".join(list_words(row)) for row in rows],
        *_lay_out_agents(rows, ids),
    )  # fmt: skip


def _lay_out_agents(rows: list[MessageRow], ids: list[str | None]) -> tuple[list[Any], ...]:
    """The sender with its own id of the message, and each recipient; one that wrote to itself is the sender."""
    agents: list[str] = []
    numbers: list[int] = []
    client_ids: list[str | None] = []
    for row, client_id in zip(rows, ids, strict=True):
        sender = fold_name(row.sender)
        others = {fold_name(name) for name, _ in row.recipients}
        others.discard(sender)
        agents += (sender, *others)
        numbers += [row.number] * (len(others) + 1)
        client_ids.append(client_id)
        client_ids += [None] * len(others)
    return agents, numbers, client_ids


def encode_rest(batches: Iterable[Batch]) -> str | None:
    """Everything the batches hold beside messages, as one JSON list; None for nothing."""
    parts = [_lay_out_rest(batch) for batch in batches if batch.has_more]
    if not parts:
        return None
    encoded = _encode(parts)
    if b"\\u000" in encoded:  # perhaps one of the characters that need it
        encoded = _encode(escape_all(msgspec.to_builtins(parts)))
    return encoded.decode()


def _lay_out_rest(batch: Batch) -> dict[str, Any]:
    """Of rows with one key the last one counts: a statement cannot change a row twice."""
    part: dict[str, Any] = {}
    if batch.forgotten:
        part["forgotten"] = [fold_name(name) for name in batch.forgotten if name]
    if batch.agents:
        agents = _last_ones(batch.agents, lambda row: fold_name(row.name))
        part["agents"] = [asdict(row) | {"meta": f"\\x{row.meta.hex()}"} for row in agents]
    if batch.spent_tokens:
        part["spent_tokens"] = _last_ones(batch.spent_tokens, lambda row: row.token_hash)
    if batch.subscriptions:
        subscriptions = _last_ones(batch.subscriptions, lambda row: (fold_name(row.agent), row.pattern))
        _divide(part, "subscriptions", subscriptions)
    if batch.members:
        _divide(part, "members", _last_ones(batch.members, lambda row: (row.channel, fold_name(row.agent))))
    if batch.streams:
        part["streams"] = _last_ones(batch.streams, lambda row: (row.topic, fold_name(row.sender), fold_name(row.recipient)))
    if batch.trail:
        part["trail"] = batch.trail
    if batch.dead_letters:
        letters = _last_ones(batch.dead_letters, lambda row: (row.number, fold_name(row.recipient)))
        _divide(part, "dead_letters", letters)
    if batch.backlog_removed:
        part["backlog_removed"] = [{"recipient": name, "number": number} for name, number in batch.backlog_removed]
    if batch.backlog_added:
        part["backlog_added"] = batch.backlog_added
    if batch.documents:
        documents = [{"name": name, "content": f"\\x{content.hex()}"} for name, content in batch.documents.items()]
        part["documents"] = [each for each in documents if batch.documents[each["name"]]]
        part["documents_removed"] = [each for each in documents if not batch.documents[each["name"]]]
    if batch.checkpoint is not None:
        part["checkpoint"] = batch.checkpoint
    return part


def _last_ones(rows: Iterable[Any], key: Callable[[Any], object]) -> list[Any]:
    return list({key(row): row for row in rows}.values())


def _divide(part: dict[str, Any], name: str, rows: list[Any]) -> None:
    for key, chosen in ((name, True), (f"{name}_removed", False)):
        found = [row for row in rows if row.active is chosen]
        if found:
            part[key] = found


# --- back -------------------------------------------------------------------------------------------------------------


def read_message(row: Row) -> MessageRow:
    """From a record that has MESSAGE_COLUMNS."""
    thread, skipped = row["thread"], row["skipped"]
    return MessageRow(
        number=row["number"], id=restore_text(row["id"]), sender=row["sender"], client_id=restore_text(row["client_id"]),
        target=restore_text(row["target"]), topic=restore_text(row["topic"]), kind=restore_text(row["kind"]),
        thread=thread and restore_text(thread), ts=row["ts"], expires_at=row["expires_at"], priority=row["priority"],
        queued=row["queued"], skipped=_decode_names(skipped) if skipped else (),
        recipients=_decode_recipients(row["recipients"]), tail=row["tail"],
    )  # fmt: skip


def read_trail_row(row: Row) -> TrailRow:
    values = {name: row[name] for name in TrailRow.__struct_fields__}
    return TrailRow(**values | {name: restore_text(values[name]) for name in ("topic", "detail")})


def read_agent(row: Row) -> AgentRow:
    return AgentRow(**{name: row[name] for name in AgentRow.__struct_fields__})


def read_stream(row: Row) -> StreamRow:
    values = dict(row) | {"topic": restore_text(row["topic"]), "done_above": tuple(row["done_above"])}
    return StreamRow(**values)


def read_token(row: Row) -> SpentToken:
    return SpentToken(row["token_hash"], row["agent"], row["spent_at"])


def read_subscription(row: Row) -> SubscriptionRow:
    return SubscriptionRow(row["agent"], restore_text(row["pattern"]))


def read_member(row: Row) -> MemberRow:
    return MemberRow(restore_text(row["channel"]), row["agent"])


def read_dead_letter(row: Row) -> DeadLetterRow:
    return DeadLetterRow(row["number"], row["recipient"], row["at"], row["code"])


def read_document(row: Row) -> tuple[str, bytes]:
    return restore_text(row["name"]), row["content"]


# --- words -----------------------------------------------------------------------------------------------------------


def list_words(row: MessageRow) -> list[str]:
    found = list(dict.fromkeys(part[:MAX_WORD_LENGTH] for part in split_parts(body_of(row))))
    if len(row.tail) <= _MOST_BYTES // 4:  # then the words are no longer than allowed, however they are encoded
        return found
    size_bytes = 0
    for place, word in enumerate(found):
        size_bytes += len(word.encode())
        if size_bytes > _MOST_BYTES:
            return found[:place]
    return found


def build_query(words: list[str]) -> str | None:
    """All parts, and the last may be the beginning of one. Parts have letters and digits alone: nothing in them is syntax."""
    parts = [part[:MAX_WORD_LENGTH] for word in words for part in split_parts(word)]
    if not parts:
        return None
    return " & ".join(f"'{part}'" for part in parts) + ":*"


# --- texts -----------------------------------------------------------------------------------------------------------


def escape_text(text: str) -> str:
    if _NUL in text or _MARK in text:
        return text.replace(_MARK, "\x01\x01").replace(_NUL, "\x01\x02")
    return text


def restore_text(text: str) -> str:
    if _MARK not in text:
        return text
    return _MARK.join(part.replace("\x01\x02", _NUL) for part in text.split("\x01\x01"))


def escape_column(texts: tuple[str | None, ...]) -> list[str | None]:
    return [text and escape_text(text) for text in texts]


def escape_all(value: Any) -> Any:
    """Every text in a value made of lists and dictionaries."""
    match value:
        case str():
            return escape_text(value)
        case list() | tuple():
            return [escape_all(each) for each in value]
        case dict():
            return {key: escape_all(each) for key, each in value.items()}
        case _:
            return value
