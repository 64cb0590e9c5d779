"""The rules: what never happens, whatever is done to the daemon. `check` returns every breach of them.

Of one SEND (a sender and the id it gave):

- answers: `stored` names the same message each time. It is never refused after it was stored. There are no more answers
  than it was said, and once everything is calm there is one.
- refusals: what was refused, and not stored by a later repetition, never arrives anywhere.
- routing: only who it was written to gets it, no more of them than `stored` said, and nothing comes that nobody sent.

Of one message and one recipient:

- once: it comes under one message id, one delivery id and one number, however often.
- attempts: each time it comes again its `attempt` is higher.
- receipts: they say the same each time, `delivered` or one kind of refusal, and come no more often than the SEND was said.
- read: `delivered` is said only of what the recipient read and acknowledged before, or passed over in a RESUME after it had
  read it. `REJECTED` is said only of what the recipient refused.
- dead: what the sender was told is dead does not come on a connection that began after that.
- durable: an acknowledgement holds, if the daemon has answered what the recipient said after it and nothing disturbed either
  for three seconds. The message does not come again on a later connection, unless a RESUME asks for it, and is not dead.
- owed: once everything is calm each recipient of a stored message has an outcome: it has it, has refused it, or it is dead.

Of one stream (a topic, a sender, a recipient):

- numbers: no number stands for two messages.
- gaps: once everything is calm, each number that never came stands for a message that died before it could.
- order: numbers only go up, and on one connection a gap is declared by `prev_seq`. What the sender wrote later comes later,
  except what was refused, or may have been, and said again.
- broadcasts: any two come to everybody in the same order.

Of connections and files:

- cut: a daemon that slept does not end the connection of a client that had written something meanwhile.
- locked out: a token that was given out is not refused.
- alone: no second daemon starts on a database that another one uses.
- events: each stored message is one `message.exchanged`, and numbers of events have no hole, unless a `stream.gap` says so.

What was first sent before files were deleted is left out, and so is what was first sent before a damage that the daemon
found and reported. Numbers and sessions may begin anew after that, so the rules about them (OF_WHOLE_FILES) are left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

from tests.chaos.account import Account, Arrival, Message, Told, make_account
from tests.chaos.history import History

DURABLE_S = 3.0  # the contract says 200 ms; a loaded machine takes longer to get to it
WAKING_S = 2.0


class Breach(NamedTuple):
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def check(history: History) -> list[Breach]:
    account = make_account(history)
    rules = {name: rule for name, rule in RULES.items() if not (account.destroyed and name in OF_WHOLE_FILES)}
    return [Breach(name, text) for name, rule in rules.items() for text in rule(account)]


# --- of one SEND ----------------------------------------------------------------------------------------------------------


def check_answers(account: Account) -> Iterator[str]:
    for message in account.messages.values():
        ids = {message_id for _, message_id, _ in message.stored}
        if len(ids) > 1:
            yield f"{message} was stored as {len(ids)} messages: {sorted(ids)}"
        refused_after = [code for place, code in message.refused if message.stored and place > message.stored[0][0]]
        if refused_after:
            yield f"{message} was stored, and then refused with {refused_after}"
        answers = len(message.stored) + len(message.refused)
        if answers > len(message.writes):
            yield f"{message} was said {len(message.writes)} times and answered {answers} times"
        if account.settled and not answers:
            yield f"{message} was never answered"


def check_refusals(account: Account) -> Iterator[str]:
    for message in account.messages.values():
        if message.refused and not message.stored:
            for recipient in message.arrivals:
                yield f"{message} was refused with {message.refused[-1][1]}, and {recipient} got it"


def check_routing(account: Account) -> Iterator[str]:
    for entry in account.unknown:
        yield f"{entry.who} got {entry.what['ref']} of {entry.what['sender']}, which nobody sent"
    for message in account.messages.values():
        if message.names is not None:
            for recipient in set(message.arrivals) - set(message.names):
                yield f"{message} came to {recipient}"
        elif message.stored and len(message.arrivals) > message.stored[0][2]:
            yield f"{message} was stored for {message.stored[0][2]} and came to {sorted(message.arrivals)}"


# --- of one message and one recipient ---------------------------------------------------------------------------------------


def _pairs(account: Account) -> Iterator[tuple[Message, str, list[Arrival]]]:
    for message in account.messages.values():
        for recipient, arrivals in message.arrivals.items():
            yield message, recipient, arrivals


def check_once(account: Account) -> Iterator[str]:
    for message, recipient, arrivals in _pairs(account):
        forms = {(arrival.message_id, arrival.delivery_id, arrival.seq) for arrival in arrivals}
        if len(forms) > 1:
            yield f"{message} came to {recipient} as {len(forms)} messages: {sorted(forms, key=str)}"


def check_attempts(account: Account) -> Iterator[str]:
    for message, recipient, arrivals in _pairs(account):
        for earlier, later in pairwise(arrivals):
            if (
                later.seq is None
                or later.attempt > earlier.attempt
                or _asked_again(account, recipient, message, earlier.place, later)
            ):
                continue
            yield f"{message} came to {recipient} as attempt {later.attempt} after attempt {earlier.attempt}"


def check_receipts(account: Account) -> Iterator[str]:
    for message in account.messages.values():
        for recipient, outcomes in message.outcomes.items():
            said = list(dict.fromkeys(outcome.what for outcome in outcomes))
            if len(said) > 1:
                yield f"the sender of {message} was told about {recipient}: {', then '.join(said)}"
            elif len(outcomes) > len(message.writes):
                yield f"{message} was said {len(message.writes)} times, and {said[0]} by {recipient} {len(outcomes)} times"


def check_read(account: Account) -> Iterator[str]:
    for message in account.messages.values():
        for recipient, outcomes in message.outcomes.items():
            first = outcomes[0]
            arrivals = message.arrivals.get(recipient, [])
            if first.what == "delivered":
                if not arrivals:
                    yield f"{message} is `delivered` by {recipient}, which never got it"
                elif arrivals[0].seq is not None and not _acknowledged(account, recipient, message, arrivals, first.place):
                    yield f"{message} is `delivered` by {recipient}, which had not acknowledged it"
            elif first.what == "REJECTED" and not any(
                answer.what == "reject" and answer.place < first.place
                for arrival in arrivals
                for answer in account.answers[(recipient, arrival.delivery_id)]
            ):
                yield f"{message} is `REJECTED` by {recipient}, which had not refused it"


def _acknowledged(account: Account, recipient: str, message: Message, arrivals: list[Arrival], before: int) -> bool:
    read = [arrival for arrival in arrivals if arrival.place < before]
    return any(
        answer.what == "ack" and answer.place < before
        for arrival in read
        for answer in account.answers[(recipient, arrival.delivery_id)]
    ) or any(
        arrival.place < place < before and (sender, topic) == (message.sender, message.topic) and last_seq >= (arrival.seq or 0)
        for arrival in read
        for place, sender, topic, last_seq in account.claims[recipient]
    )


def check_dead(account: Account) -> Iterator[str]:
    for message, recipient, arrivals in _pairs(account):
        dead = [told.place for told in message.outcomes.get(recipient, []) if told.what == "DELIVERY_TIMEOUT"]
        if not dead:
            continue
        began = {link: place for place, link in account.links[recipient]}
        for arrival in arrivals:
            if began.get(arrival.link, -1) > dead[0]:
                yield f"{message} came to {recipient} after its sender was told that it is dead"


def check_durable(account: Account) -> Iterator[str]:
    for message, recipient, arrivals in _pairs(account):
        acks = [
            answer
            for delivery_id in {arrival.delivery_id for arrival in arrivals}
            for answer in account.answers[(recipient, delivery_id)]
            if answer.what == "ack"
        ]
        durable = [(ack.place, at) for ack in acks if (at := _durable_at(account, recipient, message, ack)) is not None]
        if not durable:
            continue
        after, at = durable[0]
        later = {link for place, link in account.links[recipient] if account.entries[place].at > at}
        if any(each.link in later and not _asked_again(account, recipient, message, after, each) for each in arrivals):
            yield f"{message} came to {recipient} again, long after it was acknowledged"
        if any(told.what == "DELIVERY_TIMEOUT" for told in message.outcomes.get(recipient, [])):
            yield f"{message} was acknowledged by {recipient}, undisturbed, and is dead"


def _durable_at(account: Account, recipient: str, message: Message, ack: Told) -> float | None:
    """When the acknowledgement was durable beyond doubt: some time after the daemon answered what came behind it."""
    answered = next((place for sent, place in account.round_trips[recipient] if sent > ack.place), None)
    if answered is None:
        return None
    at = account.entries[answered].at + DURABLE_S
    if message.ttl_ms is not None and message.first_at + message.ttl_ms / 1000 < at:
        return None
    moved = any(where > ack.place and account.entries[where].at <= at for where, _ in account.links[recipient])
    return None if moved or not account.is_calm(ack.at, at) else at


def _asked_again(account: Account, recipient: str, message: Message, after: int, arrival: Arrival) -> bool:
    """A RESUME in between said a lower number."""
    return any(
        after < place < arrival.place and sender == message.sender and topic == message.topic and last_seq < (arrival.seq or 0)
        for place, sender, topic, last_seq in account.claims[recipient]
    )


def check_owed(account: Account) -> Iterator[str]:
    for entry in account.entries:
        if entry.kind == "unsettled":
            yield entry.what["why"]
    if not account.settled:
        return
    for message in account.messages.values():
        if not message.stored:
            continue
        count = message.stored[-1][2]
        over = set(message.outcomes) if message.repeats else set(message.outcomes) | set(message.arrivals)
        if message.names is not None:
            for recipient in sorted(set(message.names) - over):
                yield f"{message} is stored, and nothing came of it for {recipient}"
        elif len(over) != count:
            yield f"{message} is stored for {count}, and something came of it for {len(over)}: {sorted(over)}"


# --- of one stream ----------------------------------------------------------------------------------------------------------


def check_numbers(account: Account) -> Iterator[str]:
    for (recipient, topic, sender), firsts in account.streams.items():
        by_number: dict[int, set[str]] = defaultdict(set)
        for first in firsts:
            assert first.arrival.seq is not None
            by_number[first.arrival.seq].add(f"{first.message.ref} ({first.arrival.message_id})")
        for number, found in by_number.items():
            if len(found) > 1:
                yield f"{sender} → {recipient} [{topic}]: number {number} is {' and '.join(sorted(found))}"


def check_gaps(account: Account) -> Iterator[str]:
    if not account.settled:
        return
    died: Counter[tuple[str, str, str]] = Counter()
    for message in account.messages.values():
        for recipient in message.outcomes.keys() - message.arrivals.keys():
            died[(recipient, message.topic, message.sender)] += 1
    for (recipient, topic, sender), firsts in account.streams.items():
        came = {first.arrival.seq for first in firsts if first.arrival.seq is not None}
        missing = max(came) - len(came)
        if missing > died[(recipient, topic, sender)]:
            yield f"{sender} → {recipient} [{topic}]: {missing} numbers never came, and {died[(recipient, topic, sender)]} died"


def check_order(account: Account) -> Iterator[str]:
    refusing = {message.sender for message in account.messages.values() if message.refused}
    for (recipient, topic, sender), firsts in account.streams.items():
        stream, last, last_count = f"{sender} → {recipient} [{topic}]", 0, 0
        links: set[int] = set()
        for first in firsts:
            arrival, message = first.arrival, first.message
            assert arrival.seq is not None
            if arrival.seq <= last:
                yield f"{stream}: {message.ref} came as number {arrival.seq} after number {last}"
            elif arrival.seq > last + 1 and arrival.link in links and (arrival.prev_seq is None or arrival.prev_seq > last):
                yield f"{stream}: number {arrival.seq} came after {last} with prev_seq {arrival.prev_seq}"
            last = max(last, arrival.seq)
            links.add(arrival.link)
            if not message.refused and not (sender in refusing and _said_again(message)):
                count = int(message.ref.rpartition("-")[2])
                if count < last_count:
                    yield f"{stream}: {message.ref} came after number {last_count} of its sender"
                last_count = max(last_count, count)


def _said_again(message: Message) -> bool:
    """Before it was stored: a refusal may have been lost with the connection."""
    return len(message.writes) > 1 and bool(message.stored) and message.writes[1] < message.stored[0][0]


def check_broadcasts(account: Account) -> Iterator[str]:
    orders = {
        recipient: list(dict.fromkeys(first.message.ref for first in firsts if first.shared))
        for recipient, firsts in account.inboxes.items()
    }
    for (one, its), (other, others) in combinations(orders.items(), 2):
        common = set(its) & set(others)
        pairs = zip((ref for ref in its if ref in common), (ref for ref in others if ref in common), strict=True)
        differing = next(((mine, yours) for mine, yours in pairs if mine != yours), None)
        if differing is not None:
            yield f"{differing[0]} came to {one} before {differing[1]}, to {other} after it"


# --- of connections and files -------------------------------------------------------------------------------------------------


def check_cut(account: Account) -> Iterator[str]:
    sleeps = [(begins, over) for begins, over, name in account.faults if name == "suspend"]
    others = [(begins, over) for begins, over, name in account.faults if name != "suspend"]
    wrote: dict[tuple[str, int], float] = {}
    for entry in account.entries:
        if entry.kind == "wrote":
            wrote[(entry.who, entry.what["link"])] = entry.at
        elif entry.kind == "cut" and (entry.who, entry.what["link"]) in wrote:
            at = wrote[(entry.who, entry.what["link"])]
            for begins, over in sleeps:
                if begins <= at <= over <= entry.at <= over + WAKING_S and not any(b <= entry.at <= o for b, o in others):
                    yield f"{entry.who} wrote {over - at:.1f} s before the daemon woke, and was cut off ({entry.what['said']})"


def check_locked_out(account: Account) -> Iterator[str]:
    for entry in account.entries:
        if entry.kind == "locked_out":
            yield f"{entry.who} came back with its token: {entry.what['reason']}"


def check_alone(account: Account) -> Iterator[str]:
    for entry in account.entries:
        if entry.kind == "started_twice":
            yield f"a second daemon started: {entry.who}"


def check_events(account: Account) -> Iterator[str]:
    if not account.events:
        return
    if not any(event["type"] == "stream.gap" for event in account.events):
        told = Counter(event["message_id"] for event in account.events if event["type"] == "message.exchanged")
        for message in account.messages.values():
            for message_id in {each for _, each, _ in message.stored}:
                if told[message_id] != 1:
                    yield f"{message} ({message_id}) is stored, has {told[message_id]} events, and there is no gap"
    seqs = [event["seq"] for event in account.events]
    gaps = {event["seq"] for event in account.events if event["type"] == "stream.gap"}
    for earlier, later in pairwise(seqs):
        if later != earlier + 1 and later not in gaps:
            yield f"event {later} follows event {earlier}, and there is no gap"


RULES: dict[str, Callable[[Account], Iterator[str]]] = {
    "answers": check_answers,
    "refusals": check_refusals,
    "routing": check_routing,
    "once": check_once,
    "attempts": check_attempts,
    "receipts": check_receipts,
    "read": check_read,
    "dead": check_dead,
    "durable": check_durable,
    "owed": check_owed,
    "numbers": check_numbers,
    "gaps": check_gaps,
    "order": check_order,
    "broadcasts": check_broadcasts,
    "cut": check_cut,
    "locked out": check_locked_out,
    "alone": check_alone,
    "events": check_events,
}
OF_WHOLE_FILES = {"attempts", "numbers", "gaps", "order", "locked out", "events"}
