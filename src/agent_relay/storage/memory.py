"""Messages in this process's memory: for tests, simulations and `--storage memory`. Gone with the process.

It keeps to the port to the letter, so that what works over it works over a file. Opening one again gives what it holds,
as a restart of the daemon over a file does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from agent_relay.ports.store import (
    AgentRow,
    BacklogRow,
    Batch,
    ConversationsDone,
    DeadLetterQuery,
    DeadLetterRow,
    DeadLettersDone,
    MessageQuery,
    MessageRow,
    Owed,
    OwedDone,
    OwedQuery,
    Page,
    PageDone,
    PruneDone,
    SeenDone,
    Snapshot,
    SpentToken,
    StepsDone,
    StoreError,
    StoreStats,
    StreamRow,
    TrailDone,
    TrailRow,
    Waiting,
    WriteDone,
)
from agent_relay.protocol.encode import keep_shadows, read_shadows
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.ulid import first_number_at
from agent_relay.storage.conversations import Tally
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.replay import Replay
from agent_relay.storage.words import body_of, split_words, words_occur

_OVERHEAD_BYTES = 500  # of a row besides its tail, for the size that `stats` tells


class MemoryStore:
    def __init__(self, post: Post) -> None:
        self._post = post
        self._is_open = False
        self._messages: dict[int, MessageRow] = {}
        self._numbers: list[int] = []  # ascending
        self._last_number = 0
        self._size_bytes = 0
        self._agents: dict[str, AgentRow] = {}
        self._spent: dict[str, SpentToken] = {}
        self._subscriptions: dict[tuple[str, str], Any] = {}
        self._members: dict[tuple[str, str], Any] = {}
        self._streams: dict[tuple[str, str, str], StreamRow] = {}
        self._trail: list[TrailRow] = []
        self._dead: dict[tuple[int, str], DeadLetterRow] = {}
        self._backlog: dict[tuple[int, str], BacklogRow] = {}
        self._documents: dict[str, bytes] = {}
        self._checkpoint = 0

    def open(self) -> Snapshot:
        self._is_open = True
        self._adopt()
        waiting: dict[str, Waiting] = {}
        for (_, key), row in self._backlog.items():
            known = waiting.get(key) or Waiting(row.recipient, 0, 0)
            waiting[key] = Waiting(known.recipient, known.count + 1, known.size + row.size)
        return Snapshot(
            agents=sorted(self._agents.values(), key=lambda row: (row.registered_at, fold_name(row.name))),
            spent_tokens=sorted(self._spent.values(), key=lambda row: row.spent_at),
            subscriptions=list(self._subscriptions.values()),
            members=list(self._members.values()),
            streams=list(self._streams.values()),
            waiting=list(waiting.values()),
            dead_letters=len(self._dead),
            documents=dict(self._documents),
            last_number=self._last_number,
        )

    def _adopt(self) -> None:
        """Takes what came after the checkpoint into the backlog, unless it is done; and the streams know its numbers."""
        for number in self._after(self._checkpoint):
            message = self._messages[number]
            for name, seq in message.recipients:
                key = (message.topic, fold_name(message.sender), fold_name(name))
                stream = self._streams.get(key) or StreamRow(message.topic, message.sender, name, 0, 0, 0, 0, ())
                self._streams[key] = replace(stream, last_seq=max(stream.last_seq, seq))
                if seq > stream.done_seq and seq not in stream.done_above:
                    row = BacklogRow(name, number, seq, message.expires_at, len(message.tail))
                    self._backlog.setdefault((number, fold_name(name)), row)
        self._checkpoint = self._last_number

    @property
    def trouble(self) -> str | None:
        return None

    def write(self, batch: Batch, done: WriteDone) -> None:
        if not self._is_open:
            return self._answer(done, StoreError("The store is closed."))
        if self._clashes(batch.messages):
            return self._answer(done, StoreError("A message number was given twice."))
        for row in batch.messages:
            self._messages[row.number] = row
            self._size_bytes += len(row.tail) + _OVERHEAD_BYTES
        if batch.messages:
            self._place([row.number for row in batch.messages])
        self._write_rest(batch)
        return self._answer(done, None)

    def find(self, query: MessageQuery, done: PageDone) -> None:
        limit = max(query.limit, 0)
        found: list[MessageRow] = []
        if limit:
            for row in self._newest_first(query.before) if query.after is None else self._oldest_first(query.after):
                if _matches(row, query):
                    found.append(row)
                    if len(found) > limit:
                        break
        more = len(found) > limit
        self._answer_read(done, self._page(found[:limit], found[limit - 1].number if more else None))

    def fetch(self, numbers: list[int], done: PageDone) -> None:
        self._answer_read(
            done, self._page([self._messages[number] for number in sorted(set(numbers)) if number in self._messages])
        )

    def trail(self, message: MessageRow, done: TrailDone) -> None:
        seqs = {fold_name(recipient): seq for recipient, seq in message.recipients}
        found = [
            row
            for row in self._trail
            if row.topic == message.topic
            and fold_name(row.sender) == fold_name(message.sender)
            and row.first_seq <= seqs.get(fold_name(row.recipient), -1) <= row.last_seq
        ]
        self._answer_read(done, sorted(found, key=lambda row: row.at))

    def steps(self, messages: list[MessageRow], done: StepsDone) -> None:
        noted: dict[tuple[str, str, str, int], list[TrailRow]] = {}
        for row in self._trail:
            if row.first_seq == row.last_seq:
                key = (row.topic, fold_name(row.sender), fold_name(row.recipient), row.first_seq)
                noted.setdefault(key, []).append(row)
        found = [
            [
                step
                for name, seq in message.recipients
                for step in sorted(
                    noted.get((message.topic, fold_name(message.sender), fold_name(name), seq), ()), key=lambda row: row.at
                )
            ]
            for message in messages
        ]
        self._answer_read(done, found)

    def conversations(self, limit: int, done: ConversationsDone) -> None:
        tally = Tally()
        tally.add((row.sender, row.target, row.topic, row.thread, 1, row.number) for row in self._messages.values())
        self._answer_read(done, [(each, self._messages[each.last]) for each in tally.newest(limit)])

    def replay(self, recipient: str, after: dict[tuple[str, str], int], done: PageDone) -> None:
        replay = Replay(recipient, after)
        for message in self._newest_first(None) if after else ():
            if not replay.look_at(message):
                break
        self._answer_read(done, self._page(replay.found))

    def owed(self, query: OwedQuery, done: OwedDone) -> None:
        number, name = query.after
        found = []
        for key in sorted(key for key in self._backlog if key > (number, fold_name(name))):
            row = self._backlog[key]
            message = self._messages[row.number]
            if (
                (query.recipient is None or fold_name(query.recipient) == key[1])
                and (query.sender is None or fold_name(query.sender) == fold_name(message.sender))
                and (query.expired_at is None or row.expires_at <= query.expired_at)
            ):
                found.append(Owed(message, row.recipient, row.seq, self._count_resent(message, row)))
        self._answer_read(done, found[: max(query.limit, 0)])

    def _count_resent(self, message: MessageRow, row: BacklogRow) -> int:
        stream = (message.topic, fold_name(message.sender), fold_name(row.recipient))
        return sum(
            1
            for step in self._trail
            if step.event == "resent"
            and step.first_seq == step.last_seq == row.seq
            and (step.topic, fold_name(step.sender), fold_name(step.recipient)) == stream
        )

    def seen(self, sender: str, since: int, limit: int, done: SeenDone) -> None:
        rows = [self._messages[number] for number in self._after(first_number_at(since) - 1)]
        sent = [row for row in rows if fold_name(row.sender) == fold_name(sender)]
        self._answer_read(done, {row.client_id: row.number for row in sent[max(len(sent) - limit, 0) :]})

    def dead_letters(self, query: DeadLetterQuery, done: DeadLettersDone) -> None:
        if query.after is None:
            rows = sorted(self._dead.values(), key=lambda row: (row.at, row.number), reverse=True)
        else:
            number, name = query.after
            rows = [self._dead[place] for place in sorted(self._dead) if place > (number, fold_name(name))]
        found = [(row, self._messages[row.number]) for row in rows if row.number in self._messages]
        self._answer_read(done, found[: max(query.limit, 0)])

    def _page(self, messages: list[MessageRow], next_before: int | None = None) -> Page:
        places = ((message.number, fold_name(name)) for message in messages for name, _ in message.recipients)
        return Page(messages, next_before, frozenset(place for place in places if place in self._dead))

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        if not self._is_open:
            return self._answer(done, StoreError("The store is closed."))
        kept = {number for number, _ in (*self._dead, *self._backlog)}
        doomed: list[int] = []
        for number in self._numbers[: bisect_right(self._numbers, self._checkpoint)]:
            if len(doomed) >= max(limit, 0):
                break
            if self._messages[number].ts < before and number not in kept:
                doomed.append(number)
        for number in doomed:
            self._size_bytes -= len(self._messages.pop(number).tail) + _OVERHEAD_BYTES
        if doomed:
            self._numbers = sorted(self._messages)
        self._trail = [row for row in self._trail if row.at >= before]
        self._spent = {key: row for key, row in self._spent.items() if row.spent_at >= before}
        return self._answer(done, len(doomed))

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        if not self._is_open:
            return self._answer(done, StoreError("The store is closed."))
        key = fold_name(agent)
        found = [row for row in self._oldest_first(-1) if key in _names_in(row)][: max(limit, 0)]
        for row in found:
            others = tuple(each for each in row.recipients if fold_name(each[0]) != key)
            shadows = read_shadows(row.tail)
            if fold_name(row.sender) == key or all(name in shadows for name, _ in others):
                self._size_bytes -= len(self._messages.pop(row.number).tail) + _OVERHEAD_BYTES
                self._backlog = {place: owed for place, owed in self._backlog.items() if place[0] != row.number}
                self._dead = {place: letter for place, letter in self._dead.items() if place[0] != row.number}
            else:
                target = row.target
                if "," in target:
                    target = ",".join(name for name in target.split(",") if fold_name(name.strip()) != key)
                skipped = tuple(name for name in row.skipped if fold_name(name) != key)
                tail = keep_shadows(row.tail, [name for name in shadows if fold_name(name) != key])
                self._messages[row.number] = replace(row, recipients=others, target=target, skipped=skipped, tail=tail)
                self._dead.pop((row.number, key), None)
                self._backlog.pop((row.number, key), None)
        self._numbers = sorted(self._messages)
        if len(found) < max(limit, 1):
            self._trail = [row for row in self._trail if key not in {fold_name(row.sender), fold_name(row.recipient)}]
        return self._answer(done, len(found))

    def stats(self) -> StoreStats:
        return StoreStats(kind="memory", messages=len(self._messages), size_bytes=self._size_bytes)

    def close(self) -> None:
        self._is_open = False

    def _answer(self, done: Callable[[Any], None], outcome: object) -> None:
        post_answer(self._post, partial(done, outcome))

    def _answer_read(self, done: Callable[[Any], None], outcome: object) -> None:
        self._answer(done, outcome if self._is_open else StoreError("The store is closed."))

    def _clashes(self, rows: list[MessageRow]) -> bool:
        numbers = [row.number for row in rows]
        return len(set(numbers)) < len(numbers) or any(number in self._messages for number in numbers)

    def _place(self, numbers: list[int]) -> None:
        newest = self._numbers[-1] if self._numbers else 0
        numbers.sort()
        self._numbers += numbers
        if numbers[0] < newest:  # to look at all of them each time would cost more, the more there are
            self._numbers.sort()
        self._last_number = max(self._last_number, self._numbers[-1])

    def _write_rest(self, batch: Batch) -> None:
        """Writes the rest. Whoever is forgotten goes first: the same name may register in the same turn."""
        for name in batch.forgotten:
            self._forget(fold_name(name))
        self._agents.update({fold_name(row.name): row for row in batch.agents})
        self._spent.update({row.token_hash: row for row in batch.spent_tokens})
        for subscription in batch.subscriptions:
            _set_or_drop(self._subscriptions, (fold_name(subscription.agent), subscription.pattern), subscription)
        for member in batch.members:
            _set_or_drop(self._members, (member.channel, fold_name(member.agent)), member)
        for stream in batch.streams:
            self._streams[stream.topic, fold_name(stream.sender), fold_name(stream.recipient)] = stream
        self._trail += batch.trail
        for letter in batch.dead_letters:
            _set_or_drop(self._dead, (letter.number, fold_name(letter.recipient)), letter)
        for name, number in batch.backlog_removed:
            self._backlog.pop((number, fold_name(name)), None)
        for owed in batch.backlog_added:
            self._backlog.setdefault((owed.number, fold_name(owed.recipient)), owed)
        for name, content in batch.documents.items():
            if content:
                self._documents[name] = content
            else:
                self._documents.pop(name, None)
        if batch.checkpoint is not None:
            self._checkpoint = batch.checkpoint

    def _forget(self, name: str) -> None:
        if not name:
            return
        self._agents.pop(name, None)
        self._streams = {key: row for key, row in self._streams.items() if name not in key[1:]}
        self._subscriptions = {key: row for key, row in self._subscriptions.items() if key[0] != name}
        self._members = {key: row for key, row in self._members.items() if key[1] != name}
        self._spent = {key: row for key, row in self._spent.items() if fold_name(row.agent) != name}
        self._backlog = {key: row for key, row in self._backlog.items() if key[1] != name}

    def _after(self, number: int) -> list[int]:
        return self._numbers[bisect_right(self._numbers, number) :]

    def _newest_first(self, before: int | None) -> Iterator[MessageRow]:
        end = len(self._numbers) if before is None else bisect_left(self._numbers, before)
        return (self._messages[self._numbers[place]] for place in range(end - 1, -1, -1))

    def _oldest_first(self, after: int) -> Iterator[MessageRow]:
        return (self._messages[number] for number in self._after(after))


def _set_or_drop(table: dict[Any, Any], key: object, row: Any) -> None:
    if row.active:
        table[key] = row
    else:
        table.pop(key, None)


def _names_in(row: MessageRow) -> set[str]:
    return {fold_name(row.sender), *(fold_name(name) for name, _ in row.recipients)}


def _matches(row: MessageRow, query: MessageQuery) -> bool:
    names = {fold_name(name) for name, _ in row.recipients}
    sender = fold_name(row.sender)
    return (
        (query.sender is None or fold_name(query.sender) == sender)
        and (query.recipient is None or fold_name(query.recipient) in names)
        and (query.with_agent is None or fold_name(query.with_agent) in names | {sender})
        and (query.between is None or _is_between(row, *map(fold_name, query.between)))
        and query.target in {None, row.target}
        and query.topic in {None, row.topic}
        and (query.thread is None or query.thread == row.thread)
        and query.kind in {None, row.kind}
        and (query.since is None or row.ts >= query.since)
        and (query.until is None or row.ts < query.until)
        and (query.search is None or words_occur(split_words(query.search), body_of(row)))
    )


def _is_between(row: MessageRow, one: str, other: str) -> bool:
    return (fold_name(row.sender), fold_name(row.target)) in {(one, other), (other, one)}
