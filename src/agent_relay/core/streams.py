"""Streams: the order of messages from one sender to one recipient on one topic.

A stream numbers its messages from 1 without a gap and knows how far the recipient has come: everything up to
`done_seq`, and the numbers in `done_above`, is settled, one way or another. How far sending and settling have come since
the last write is all that the store is told about ordinary traffic; only what went otherwise is noted by itself.
"""

from __future__ import annotations

from agent_relay.ports.store import StreamRow, TrailRow


class Stream:
    __slots__ = (
        "base_seq", "claimed_seq", "done_above", "done_at", "done_seq", "gaps", "heard_seq", "last_seq", "noted_done",
        "noted_wire", "otherwise", "recipient", "sender", "sent_at",
        "sent_before", "tail_lane", "topic", "unsent", "waiting", "wire_seq",
    )  # fmt: skip

    def __init__(self, topic: str, sender: str, recipient: str, first_seq: int = 0) -> None:
        self.topic = topic
        self.sender = sender
        self.recipient = recipient
        self.last_seq = first_seq
        self.wire_seq = 0  # the highest number ever sent
        self.sent_before = 0  # up to here they may have been sent before this start
        self.heard_seq = 0  # the highest number ever answered: whatever came before it on that connection has arrived
        self.base_seq = 0  # on this connection: the number the next one must follow, or else the gap is declared
        self.claimed_seq = 0  # so far the recipient's RESUME said it had come; what waits in the store is settled when it is read
        self.done_seq = first_seq
        self.done_above: set[int] = set()
        self.gaps: dict[int, int] = {}  # from a number in `done_above` up to this one: those of messages the store has lost
        self.waiting = 0  # messages of this stream in the recipient's queue
        self.tail_lane = 0  # the lane of the last of them: the next one cannot be put into a faster lane
        self.sent_at = 0  # wall clock of the first that was sent since the last write; 0: none was
        self.done_at = 0  # the same of the first that was acknowledged
        self.noted_wire = first_seq  # up to here the trail says that it was sent
        self.noted_done = first_seq  # up to here the trail says how it ended
        self.unsent: set[int] = set()  # above `noted_wire`: given up before they were ever sent
        self.otherwise: set[int] = set()  # above `noted_done`: their end is noted by itself

    def is_done(self, seq: int) -> bool:
        return seq <= self.done_seq or seq in self.done_above

    def settle(self, seq: int) -> None:
        if seq == self.done_seq + 1:
            self.done_seq = seq
            while self.done_above and self.done_seq + 1 in self.done_above:
                self.done_seq += 1
                self.done_above.remove(self.done_seq)
                self.done_seq = self.gaps.pop(self.done_seq, self.done_seq)
        elif seq > self.done_seq:
            self.done_above.add(seq)

    def connection_lost(self) -> None:
        """Forgets what was sent and not answered: it may never have arrived."""
        self.base_seq = self.heard_seq

    def row(self) -> StreamRow:
        return StreamRow(
            self.topic, self.sender, self.recipient, self.last_seq, self.wire_seq, self.heard_seq, self.done_seq,
            tuple(each for seq in sorted(self.done_above) for each in self._with_gap(seq)),
        )  # fmt: skip

    def _with_gap(self, seq: int) -> tuple[int, ...]:
        return (seq, -self.gaps[seq]) if seq in self.gaps else (seq,)

    def trail_rows(self, now: int) -> list[TrailRow]:
        """Messages sent and acknowledged since the last call, as ranges, each with the moment it began."""
        rows = self._ranges("sent", self.noted_wire, self.wire_seq, self.unsent, self.sent_at or now)
        rows += self._ranges("acknowledged", self.noted_done, self.done_seq, self.otherwise, self.done_at or now)
        self.sent_at = self.done_at = 0
        self.noted_wire, self.noted_done = self.wire_seq, self.done_seq
        self.unsent = {seq for seq in self.unsent if seq > self.noted_wire}
        self.otherwise = {seq for seq in self.otherwise if seq > self.noted_done}
        return rows

    def _ranges(self, event: str, after: int, last: int, but: set[int], at: int) -> list[TrailRow]:
        rows, first = [], after + 1
        for end in [*sorted(seq for seq in but if after < seq <= last), last + 1]:
            if first < end:
                rows.append(TrailRow(self.topic, self.sender, self.recipient, first, end - 1, at, event))
            first = end + 1
        return rows


def restore_stream(row: StreamRow, unwritten: int = 0) -> Stream:
    """`unwritten` is how many messages may have gone out without a note of it, when the last daemon ended without a word."""
    stream = Stream(row.topic, row.sender, row.recipient)
    stream.last_seq = row.last_seq
    stream.wire_seq = stream.sent_before = min(row.last_seq, row.wire_seq + unwritten)
    stream.heard_seq = stream.base_seq = row.heard_seq
    stream.done_seq = row.done_seq
    for seq in row.done_above:
        if seq > 0:
            stream.done_above.add(seq)
        else:
            stream.gaps[max(stream.done_above)] = -seq
    stream.noted_wire, stream.noted_done = stream.wire_seq, row.done_seq
    stream.otherwise = set(stream.done_above)
    return stream
