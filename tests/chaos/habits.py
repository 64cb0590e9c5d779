"""How an agent behaves: how much it says, and what it does with what it gets."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Habits:
    rate: float = 25.0  # messages per second
    groups: float = 0.25  # of those: to everybody, a channel or a topic
    short_lived: float = 0.3  # of those it sends; dead within a second or two if nobody acknowledges them
    longest_life_ms: int = 1_500  # of those
    ignores: float = 0.06  # of those it gets: it comes again
    rejects: float = 0.03
    is_busy: float = 0.03
    is_slow: float = 0.1  # acknowledges later
    leaves: float = 0.25  # times per second that it drops the connection and comes back
    longest_absence_s: float = 1.2
    longest_retry_s: float = 0.02  # after it was cut off: so soon that a daemon which just started is asked at once
    window: int = 8  # on the wire at once; what waits behind can expire there
    fresh: float = 0.1  # of its returns: without a token
    resumes: float = 0.6  # of the others: RESUME, else HELLO with the token
    forgets: float = 0.1  # of its RESUMEs: asks for some once more
    moves: float = 0.0  # of its returns: to any of the hosts
    patience_s: float = 15.0  # until a greeting that is not answered is said elsewhere, or again


def sluggish(habits: Habits) -> Habits:
    """So slow that messages wait, and some expire while they do."""
    return replace(habits, window=min(2, habits.window), is_slow=max(0.5, habits.is_slow))


CALM = Habits(rate=0, ignores=0, rejects=0, is_busy=0, is_slow=0, leaves=0, fresh=0, window=64)
