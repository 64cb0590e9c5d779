"""The records written behind the messages: cursors, trails, dead letters, and the checkpoint that makes a restart short.

None of it is needed before somebody is answered, so it is gathered and written a few times a second. Losing the last
of it in a crash means that a recipient sees a message again, with the same id and number, and nothing worse.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from agent_relay.core.context import Context
from agent_relay.core.streams import Stream
from agent_relay.ports.store import BacklogRow, Batch, DeadLetterRow, Snapshot, SpentToken, TrailRow
from agent_relay.protocol.names import fold_name

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery, Message

_YOUNG_MS = 500  # most messages are settled before; only what is older is worth a row in the backlog
_LATELY = 50_000  # changes of dead letters that are known here: far more than there can be while the store reads a page


class Taken(NamedTuple):
    """The things a batch took out of the journal, beside the rows in it."""

    streams: list[Stream]
    agents: list[Agent]
    then: list[Callable[[], None]]


class Journal:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._streams: dict[Stream, None] = {}
        self._agents: dict[str, Agent] = {}
        self._trail: list[TrailRow] = []
        self._dead_letters: list[DeadLetterRow] = []
        self._spent: list[SpentToken] = []
        self.dead_letters = 0  # how many there are
        self._lately: dict[tuple[int, str], bool] = {}  # whether (message, recipient) became or ceased to be one, the newest last
        self._then: list[Callable[[], None]] = []  # what may be said once all of this is durable
        self._recent: dict[int, Message] = {}  # open messages after the checkpoint, by number
        self._backlog_added: list[BacklogRow] = []
        self._backlog_removed: list[tuple[str, int]] = []
        self._documents: dict[str, bytes] = {}
        self._checkpoint = 0
        self._last_number = 0
        self._written_at = context.steady_ms

    # --- what happened ----------------------------------------------------------------------------------------------

    def opened(self, messages: list[Message]) -> None:
        """They are durable; those that have recipients are to be settled."""
        recent = self._recent
        for message in messages:
            if message.open:
                recent[message.row.number] = message

    def stored(self, number: int) -> None:
        self._last_number = number

    def closed(self, numbers: list[int]) -> None:
        """These messages are settled for all their recipients, before they were listed."""
        for number in numbers:
            self._recent.pop(number, None)

    def listed(self, delivery: Delivery) -> None:
        """It waits in the backlog alone."""
        self._list(delivery.message, delivery.recipient.name, delivery.seq)

    def _list(self, message: Message, recipient: str, seq: int) -> None:
        row = message.row
        self._backlog_added.append(BacklogRow(recipient, row.number, seq, row.expires_at, len(row.tail)))

    def unlisted(self, recipient: str, number: int) -> None:
        """A message of the backlog is settled for this recipient."""
        self._backlog_removed.append((recipient, number))

    def changed(self, stream: Stream) -> None:
        self._streams[stream] = None

    def sent(self, stream: Stream) -> None:
        """The first of a run of messages went out; how far the run went is written with the next batch."""
        stream.sent_at = self._context.wall_ms
        self._streams[stream] = None

    def acknowledged(self, stream: Stream) -> None:
        """The first of a run was acknowledged, in order."""
        stream.done_at = self._context.wall_ms
        self._streams[stream] = None

    def noted(self, delivery: Delivery, event: str, detail: str = "") -> None:
        self.note(delivery.stream, delivery.seq, event, detail, self._context.wall_ms)

    def note(self, stream: Stream, seq: int, event: str, detail: str, at: int) -> None:
        """A step of one message of the stream, by the wall clock."""
        self._trail.append(TrailRow(stream.topic, stream.sender, stream.recipient, seq, seq, at, event, detail))
        self._streams[stream] = None

    def ended(self, delivery: Delivery, event: str, detail: str = "") -> None:
        """It did not end as the others of its stream do, in order and acknowledged."""
        stream, seq = delivery.stream, delivery.seq
        stream.otherwise.add(seq)
        if not delivery.attempts:
            stream.unsent.add(seq)
        self.noted(delivery, event, detail)

    def dead(self, delivery: Delivery, code: str) -> None:
        row = DeadLetterRow(delivery.message.row.number, delivery.recipient.name, self._context.wall_ms, code)
        self._dead_letters.append(row)
        self.dead_letters += 1
        self._lately[(row.number, delivery.recipient.key)] = True

    def revived(self, number: int, recipient: str) -> None:
        """This dead letter is none any more."""
        place = (number, fold_name(recipient))
        if self._lately.pop(place, True):
            self._dead_letters.append(DeadLetterRow(number, recipient, self._context.wall_ms, "", active=False))
            self.dead_letters -= 1
        self._lately[place] = False

    def is_dead(self, number: int, key: str, *, stored: bool) -> bool:
        """Whether this message is a dead letter for this recipient. `stored`: what the store has just said, which may be a
        moment old."""
        return self._lately.get((number, key), stored)

    def then(self, callback: Callable[[], None]) -> None:
        """Calls back once everything noted so far is durable, which is as soon as can be: somebody waits for it."""
        self._then.append(callback)

    def agent_changed(self, agent: Agent) -> None:
        self._agents[agent.key] = agent

    def agent_dropped(self, agent: Agent) -> None:
        """It could not be registered: whoever comes by its name next is another."""
        if self._agents.get(agent.key) is agent:
            del self._agents[agent.key]

    def token_spent(self, token_hash: str, agent: str) -> None:
        self._spent.append(SpentToken(token_hash, agent, self._context.wall_ms))

    def keep(self, name: str, content: bytes) -> None:
        """A document of the daemon's, in place of the one before; an empty one removes it."""
        self._documents[name] = content

    def resume_from(self, snapshot: Snapshot) -> None:
        self._checkpoint = self._last_number = snapshot.last_number
        self.dead_letters = snapshot.dead_letters

    # --- writing ----------------------------------------------------------------------------------------------------

    @property
    def is_awaited(self) -> bool:
        return bool(self._then)

    def is_due(self) -> bool:
        waited = self._context.steady_ms - self._written_at
        return self.is_awaited or (waited >= self._context.limits.cursor_flush_ms and self.has_news())

    def has_news(self) -> bool:
        return bool(
            self._streams or self._agents or self._trail or self._dead_letters or self._spent or self._backlog_removed
            or self._backlog_added or self._documents
        )  # fmt: skip

    def fill(self, batch: Batch) -> Taken:
        """Moves everything gathered so far into the batch."""
        self._age()
        taken = Taken(list(self._streams), list(self._agents.values()), self._then)
        self._then = []
        self._written_at = self._context.steady_ms
        for stream in self._streams:
            self._trail += stream.trail_rows(self._context.wall_ms)
            batch.streams.append(stream.row())
        self._streams.clear()
        batch.agents += [agent.row() for agent in self._agents.values()]
        self._agents.clear()
        batch.trail, self._trail = self._trail, []
        batch.dead_letters, self._dead_letters = self._dead_letters, []
        self._forget_what_the_store_knows(len(batch.dead_letters))
        batch.spent_tokens += self._spent
        self._spent = []
        batch.backlog_removed, self._backlog_removed = self._backlog_removed, []
        removed = set(batch.backlog_removed)
        batch.backlog_added = [row for row in self._backlog_added if (row.recipient, row.number) not in removed]
        self._backlog_added = []
        batch.documents, self._documents = self._documents, {}
        batch.checkpoint = self._checkpoint
        return taken

    def take_back(self, batch: Batch, taken: Taken) -> None:
        """The batch was not written: its news are news again."""
        self._streams.update(dict.fromkeys(taken.streams))
        for agent in taken.agents:
            self._agents.setdefault(agent.key, agent)
        self._then[:0] = taken.then
        self._trail[:0] = batch.trail
        self._dead_letters[:0] = batch.dead_letters
        self._spent[:0] = batch.spent_tokens
        self._backlog_added[:0] = batch.backlog_added
        self._backlog_removed[:0] = batch.backlog_removed
        self._documents = batch.documents | self._documents  # a newer one counts

    def _forget_what_the_store_knows(self, unwritten: int) -> None:
        for place in list(islice(self._lately, max(0, len(self._lately) - _LATELY - unwritten))):
            del self._lately[place]

    def _age(self) -> None:
        """Moves the checkpoint on, and what is still open before it into the backlog."""
        oldest_young = self._context.steady_ms - _YOUNG_MS
        aged = []
        for message in self._recent.values():
            if message.accepted > oldest_young:
                break
            aged.append(message)
        for message in aged:
            row, key = message.row, (message.row.topic, message.sender.key)
            message.listed = True
            del self._recent[row.number]
            for agent, (name, seq) in zip(message.recipients, row.recipients, strict=True):
                stream = agent.streams.get(key)
                if stream is not None and not stream.is_done(seq):
                    self._list(message, name, seq)
                    self._streams[stream] = None  # the number was given out
        first_open = next(iter(self._recent), None)
        self._checkpoint = self._last_number if first_open is None else first_open - 1
