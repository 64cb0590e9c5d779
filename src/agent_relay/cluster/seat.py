"""The seat: which host of a project runs the core.

A claim is a record of the log like any other, and so is refused unless it directly follows what its host has copied: of several
claims at once one wins, and whoever had the seat cannot append any more. What hosts say to each other (`alive`) only spares
them from claiming a seat that somebody has; nothing depends on its arriving in time.

    FOLLOWING    somebody has the seat, or had it a moment ago
    ASKING       nobody was heard: how long is the log?
    CATCHING_UP  the copy is not there yet
    CLAIMING     the claim is under way
    OPENING      the claim is in the log, and not yet in our copy
    SEATED
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

import msgspec
from msgspec import Struct

from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.records import Claim, encode_claim
from agent_relay.ports.cluster import (
    Appended,
    ClusterLog,
    FollowHeard,
    NotNext,
    SeatListener,
    UnseatReason,
    Wire,
    WireMessage,
)
from agent_relay.ports.log import Log

ALIVE_EVERY_MS = 500
_SILENCE_MS = 3_000  # without a word of the seat's host; a pause of the machine or of NATS is often a second
_AT_START_MS = 1_000  # a host that has just come asks who has the seat, and is answered at once
_JITTER_MS = 1_000
_ASK_AGAIN_MS = 500
_VACANT_JITTER_MS = 200  # a seat that was given back: nobody is waited for, and rarely two claim at once
_REGRESSED_MS = 30_000
_LOST_MS = 15_000  # a leader that is cut off answers with old values for ten seconds
_AHEAD_MS = 3_000  # a host that is ahead says so every half a second


class SeatState(Enum):
    FOLLOWING = auto()
    ASKING = auto()
    CATCHING_UP = auto()
    CLAIMING = auto()
    OPENING = auto()
    SEATED = auto()


class Alive(Struct, frozen=True):
    host: str
    mark: str
    term: int
    position: int


class Ahead(Struct, frozen=True):
    """A host has copied more than the log has."""

    host: str
    position: int


class Seat:
    """`apply` puts a record into our own copy, as if it had been followed. `jitter` draws a number below what it is given."""

    def __init__(
        self, wire: Wire, log: ClusterLog, names: Names, host: str, mark: str, listener: SeatListener, apply: FollowHeard,
        jitter: Callable[[int], int], notes: Log, now: int, *, term: int, position: int,
    ) -> None:  # fmt: skip
        self._wire = wire
        self._log = log
        self._names = names
        self._host = host
        self._mark = mark
        self._listener = listener
        self._apply = apply
        self._jitter = jitter
        self._notes = notes
        self._now = now
        self.state = SeatState.FOLLOWING
        self.term = term  # the highest that the copy, or an `alive`, has named
        self.position = position
        self.holder = ""  # the host that has the seat, as far as we know
        self.seat_position = position  # of the host that has it, as it last said
        self._target = 0  # where the copy has to be before we claim
        self._patience_at = now + _AT_START_MS + jitter(_AT_START_MS)
        self._due_at = 0  # the next `alive`, or the next question
        self._behind_since: int | None = None  # when the log was first seen to end before our copy, or another host's
        self._ahead: Ahead | None = None  # another host that has copied more than the log has, and more than we
        self._ahead_until = 0
        self._ahead_due_at = 0  # our own next word of that
        self._lost_since: int | None = None  # while we have the seat: when records of ours were first missing
        self._is_leaving = False
        self._bar = ""  # why this host must not have the seat

    def start(self) -> None:
        self._wire.subscribe(self._names.alive, self._heard_alive)
        self._wire.subscribe(self._names.who, self._heard_question)
        self._wire.subscribe(self._names.ahead, self._heard_ahead)

    def connected(self) -> None:
        """Whoever has the seat is asked to say so; nobody is missed before there was time for it."""
        self._wire.publish(self._names.who, b"")
        if self.state is not SeatState.SEATED:
            self._be_patient(_AT_START_MS if not self.holder else _SILENCE_MS)

    @property
    def behind(self) -> int:
        """Records that the seat has and our copy has not, as far as it told."""
        return max(0, self.seat_position - self.position)

    # --- the clock ------------------------------------------------------------------------------------------------------

    def clock_says(self, now: int) -> None:
        self._now = now
        if self.state is not SeatState.SEATED and self._log.is_regressed and now >= self._ahead_due_at:
            self._say_ahead()  # before anybody with less than we have claims the seat
        match self.state:
            case SeatState.SEATED:
                if now >= self._due_at:
                    self._say_alive()
                self._watch_log()
            case SeatState.FOLLOWING:
                if now >= self._patience_at and not self._is_leaving and not self._bar:
                    self._miss_seat()
            case SeatState.ASKING:
                if now >= self._due_at:
                    self._ask()
            case _:
                pass

    def _watch_log(self) -> None:
        """A log that has lost what we appended takes nothing more; it is given up also while there is nothing to append."""
        if not self._log.is_regressed:
            self._lost_since = None
        elif self._lost_since is None:
            self._lost_since = self._now
        elif self._now - self._lost_since >= _LOST_MS:
            self._lost_since = None
            self.lose(UnseatReason.LOG_SILENT)

    def _miss_seat(self) -> None:
        self.state = SeatState.ASKING
        if self.holder:
            self._notes.note("cluster_seat_missed", host=self.holder, term=self.term)
        self.holder = ""
        self._listener.out_of_reach()
        self._ask()

    def _ask(self) -> None:
        self._due_at = self._now + _ASK_AGAIN_MS
        if self._now < self._ahead_until:  # what it has and the log has not would be lost with our claim
            self._behind_since = self._now if self._behind_since is None else self._behind_since
            return
        self._ahead = None
        self._log.ask_last(self._answered)

    def _answered(self, last: int | None) -> None:
        if self.state is not SeatState.ASKING or last is None or self._is_leaving:
            return
        if last < self.position:  # a leader that is cut off answers so for a while; longer means that records are lost
            self._behind_since = self._now if self._behind_since is None else self._behind_since
            self._say_ahead()
            return
        self._behind_since = None
        self._target = last
        self.state = SeatState.CATCHING_UP
        self._claim_if_there()

    @property
    def trouble(self) -> str:
        """Why nobody claims the seat, or we may not."""
        if self._bar:
            return self._bar
        if self._behind_since is None or self._now - self._behind_since < _REGRESSED_MS:
            return ""
        who, position = (
            ("this host", self.position) if self._ahead is None else (f"host {self._ahead.host}", self._ahead.position)
        )
        return (
            f"log_regressed: the cluster's log ends before record {position:,}, which {who} has copied, so NATS has lost records "
            f"that it had confirmed. No host takes the seat: run `agent-relay cluster repair` at {who}."
        )

    def _claim_if_there(self) -> None:
        if self.state is not SeatState.CATCHING_UP or self.position < self._target:
            return
        self.state = SeatState.CLAIMING
        claim = Claim(self.term + 1, self._host, self._mark)
        record = encode_claim(claim)

        def appended(outcome: Appended | NotNext) -> None:
            if self.state is not SeatState.CLAIMING:
                return
            if isinstance(outcome, NotNext):
                self._follow("", self.term)
                return
            self.state = SeatState.OPENING
            self._log.unfollow()
            self._apply(outcome.sequence, record)

        self._log.append(record, self.position, appended)

    # --- what comes -----------------------------------------------------------------------------------------------------

    def applied(self, position: int, claim: Claim | None) -> None:
        """A record is in our copy, while we do not have the seat."""
        self.position = position
        if claim is None:
            self._be_patient()  # somebody appends, so somebody has the seat
            self._claim_if_there()
            return
        if claim.leaves:
            self._vacated(claim)
            return
        is_ours = (claim.host, claim.mark) == (self._host, self._mark)
        if is_ours and self.state in {SeatState.CLAIMING, SeatState.OPENING}:
            self._sit_down(claim.term)
        elif is_ours:  # given up while it was on its way: nobody has the seat, and everybody will soon miss it
            self.term = max(self.term, claim.term)
        elif claim.term > self.term or not self.holder:
            self._follow(claim.host, claim.term)
        else:
            self._claim_if_there()

    def _vacated(self, claim: Claim) -> None:
        """Its holder has given the seat back: what it said before counts no more, and it is not waited for."""
        if claim.term > self.term:
            self._follow("", claim.term)
            self.holder = ""
            self._patience_at = self._now + self._jitter(_VACANT_JITTER_MS)
            self._listener.out_of_reach()

    def _sit_down(self, term: int) -> None:
        if self.state is SeatState.CLAIMING:  # it came with the log before the answer did
            self._log.give_up()
            self._log.unfollow()
        self.term, self.holder = term, self._host
        self.state = SeatState.SEATED
        self._say_alive()
        self._notes.note("cluster_seated", term=term, position=self.position)
        self._listener.seated(term, self.position)

    def _heard_alive(self, message: WireMessage) -> None:
        try:
            alive = msgspec.json.decode(message.payload, type=Alive)
        except msgspec.MsgspecError:
            return
        if (alive.host, alive.mark) == (self._host, self._mark):
            return
        self.seat_position = alive.position
        if self.state is SeatState.SEATED:
            if alive.term > self.term:
                self.lose(UnseatReason.SUPERSEDED)
                self._follow(alive.host, alive.term)
        elif alive.term >= self.term and self.state is not SeatState.OPENING:
            self._follow(alive.host, alive.term)

    def _heard_ahead(self, message: WireMessage) -> None:
        try:
            ahead = msgspec.json.decode(message.payload, type=Ahead)
        except msgspec.MsgspecError:
            return
        if ahead.host == self._host or ahead.position <= self.position:
            return
        self._ahead, self._ahead_until = ahead, self._now + _AHEAD_MS
        if self.state is SeatState.CATCHING_UP:
            self.state = SeatState.ASKING

    def _heard_question(self, _message: WireMessage) -> None:
        if self.state is SeatState.SEATED:
            self._say_alive()

    # --- changes --------------------------------------------------------------------------------------------------------

    def lose(self, reason: UnseatReason) -> None:
        """The seat is another's, or as good as lost: the core must not say anything any more."""
        if self.state is not SeatState.SEATED:
            return
        self._notes.note("cluster_unseated", term=self.term, reason=reason.value)
        self.state = SeatState.FOLLOWING
        self.holder = ""
        self._be_patient()
        self._log.give_up()
        self._listener.unseated(reason)

    def bar(self, reason: str) -> None:
        """Claims nothing, and gives up the seat, until called with ""."""
        self._bar = reason
        if not reason:
            return
        self.lose(UnseatReason.BARRED)
        if self.state in {SeatState.ASKING, SeatState.CATCHING_UP}:
            self.state = SeatState.FOLLOWING

    def leave(self) -> None:
        """We stop: no claim from here on."""
        self._is_leaving = True
        if self.state in {SeatState.ASKING, SeatState.CATCHING_UP}:
            self.state = SeatState.FOLLOWING

    def resign(self, done: Callable[[], None]) -> None:
        """Gives the seat back, after the last record of ours: whoever reads it claims at once. `done` may never be called."""
        if self.state is not SeatState.SEATED:
            done()
            return
        self.state = SeatState.FOLLOWING
        record = encode_claim(Claim(self.term + 1, self._host, self._mark, leaves=True))
        self._log.append(record, self.position, lambda _outcome: done())

    def _follow(self, host: str, term: int) -> None:
        """Somebody else has it, or has just appended something."""
        if self.state is SeatState.CLAIMING:
            self._log.give_up()
        self.state = SeatState.FOLLOWING
        self._be_patient()
        if host and (host, term) != (self.holder, self.term):
            self.holder, self.term = host, term
            self._listener.seat_moved(host, term)
        self.term = max(self.term, term)

    def _be_patient(self, silence_ms: int = _SILENCE_MS) -> None:
        self._patience_at = max(self._patience_at, self._now + silence_ms + self._jitter(min(silence_ms, _JITTER_MS)))

    def _say_ahead(self) -> None:
        self._ahead_due_at = self._now + _ASK_AGAIN_MS
        self._wire.publish(self._names.ahead, msgspec.json.encode(Ahead(self._host, self.position)))

    def _say_alive(self) -> None:
        self._due_at = self._now + ALIVE_EVERY_MS
        alive = Alive(self._host, self._mark, self.term, self.position)
        self._wire.publish(self._names.alive, msgspec.json.encode(alive))
