"""Replay and then live: without a gap, without a repeat, and without waiting for anybody."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.events.bus import MAX_BEHIND, EventBus, Subscription
from agent_relay.events.drafts import Handover, Lost
from agent_relay.events.filter import EventFilter, make_filter
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.record import Record
from agent_relay.storage.event_memory import MemoryEvents
from tests.support.event_driver import START_MS, make_note


class Feed:
    """A bus over memory whose answers come when the test says so."""

    def __init__(self, kept: int = 100_000) -> None:
        self.posts: deque[Callable[[], None]] = deque()
        self.store = MemoryEvents(self.posts.append, kept)
        self.store.open(self._appended)
        self.bus = EventBus(self.store)
        self.told = 0

    def _appended(self, first_seq: int, count: int, data: bytes) -> None:
        self.bus.published(first_seq, count, data)

    def publish(self, count: int = 1, agent: str = "Alice") -> None:
        self.store.append([make_note(self.told + place, agent) for place in range(1, count + 1)])
        self.told += count

    def settle(self) -> None:
        while self.posts:
            self.posts.popleft()()

    def subscribe(self, wanted: EventFilter | None = None, **where: int) -> Subscription:
        return self.bus.subscribe(wanted or EventFilter(), on_news=lambda: None, **where)

    def take_all(self, subscription: Subscription, most: int = 256) -> list[Record]:
        taken: list[Record] = []
        self.settle()
        while records := subscription.take(most):
            taken += records
            self.settle()
        return taken


def numbers(records: list[Record]) -> list[int]:
    return [record.seq for record in records]


def test_without_a_place_to_begin_it_is_live_only() -> None:
    feed = Feed()
    feed.publish(5)
    feed.settle()
    subscription = feed.subscribe()
    feed.publish(2)
    assert numbers(feed.take_all(subscription)) == [6, 7]
    assert subscription.cursor == 7


@pytest.mark.parametrize("after", [0, 1, 4_000, 9_999, 10_000])
def test_everything_after_a_number_and_then_live(after: int) -> None:
    """10,000 events are more than are kept in memory, so the older ones come from the store."""
    feed = Feed()
    for _ in range(10):
        feed.publish(1_000)
        feed.settle()
    assert feed.bus.first_kept > 1
    subscription = feed.subscribe(after_seq=after)
    taken = feed.take_all(subscription)
    feed.publish(3)
    taken += feed.take_all(subscription)
    assert numbers(taken) == list(range(after + 1, 10_004))
    assert subscription.is_live


@pytest.mark.parametrize("seed", range(40))
def test_no_gap_and_no_repeat_whatever_happens_in_between(seed: int) -> None:
    rng = random.Random(seed)
    feed = Feed()
    feed.publish(rng.randrange(1, 9_000))
    feed.settle()
    after = rng.randrange(feed.told + 1)
    subscription, taken = feed.subscribe(after_seq=after), []
    for _ in range(300):
        match rng.randrange(4):
            case 0:
                feed.publish(rng.randrange(1, 40))
            case 1 if feed.posts:
                feed.posts.popleft()()
            case _:
                taken += subscription.take(rng.choice((1, 10, 256)))
        if subscription.is_cut:
            taken += feed.take_all(subscription)
            subscription = feed.subscribe(after_seq=subscription.cursor)
    while len(taken) < feed.told - after:
        more = feed.take_all(subscription)
        assert more or subscription.is_cut
        taken += more
        if subscription.is_cut:
            subscription = feed.subscribe(after_seq=subscription.cursor)
    assert numbers(taken) == list(range(after + 1, feed.told + 1))


def test_since_a_moment() -> None:
    feed = Feed()
    feed.publish(20)
    feed.settle()
    subscription = feed.subscribe(since_ms=START_MS + 15_000)
    taken = feed.take_all(subscription)
    feed.publish(1)
    assert numbers(taken + feed.take_all(subscription)) == [15, 16, 17, 18, 19, 20, 21]


def test_a_filter_holds_for_the_replay_and_for_what_follows() -> None:
    feed = Feed()
    feed.publish(3, "Alice")
    feed.publish(3, "Bob")
    feed.settle()
    subscription = feed.subscribe(make_filter(agent="bob"), after_seq=0)
    feed.publish(1, "Alice")
    feed.publish(1, "Bob")
    assert numbers(feed.take_all(subscription)) == [4, 5, 6, 8]


def test_what_is_passed_over_moves_the_cursor_on() -> None:
    feed = Feed()
    subscription = feed.subscribe(make_filter(agent="Bob"))
    feed.publish(3, "Alice")
    feed.settle()
    assert subscription.cursor == 3
    feed.publish(1, "Bob")
    feed.publish(1, "Alice")
    feed.settle()
    assert subscription.cursor == 3
    subscription.take()
    assert subscription.cursor == 5


def test_who_falls_a_thousand_behind_is_cut_and_can_go_on() -> None:
    feed = Feed()
    slow, quick, news = feed.subscribe(), feed.subscribe(), []
    slow._on_news = lambda: news.append(slow.is_cut)
    for _ in range(MAX_BEHIND + 1):
        feed.publish()
        feed.settle()
        assert len(quick.take()) == 1
    assert slow.is_cut
    assert not quick.is_cut
    assert news == [False, True]
    assert feed.bus.subscribers == 1
    taken = feed.take_all(slow)
    assert numbers(taken) == list(range(1, MAX_BEHIND + 1))
    again = feed.subscribe(after_seq=slow.cursor)
    assert numbers(feed.take_all(again)) == [MAX_BEHIND + 1]


def test_what_is_no_longer_kept_is_told_first() -> None:
    feed = Feed(kept=10)
    for _ in range(5):
        feed.publish(1_000)
        feed.settle()
    feed.bus._kept.clear()
    subscription = feed.subscribe(after_seq=5)
    taken = feed.take_all(subscription)
    oldest = taken[1].seq
    assert taken[0].type == "stream.gap"
    assert taken[0].seq == oldest - 1
    assert f'"oldest":{oldest}'.encode() in taken[0].line
    assert numbers(taken[1:]) == list(range(oldest, 5_001))


@pytest.mark.parametrize("where", [{"after_seq": 5}, {"since_ms": START_MS + 1}])
def test_what_the_store_has_let_go_of_and_memory_has_not_is_told(where: dict[str, int]) -> None:
    feed = Feed(kept=10)
    for _ in range(9):
        feed.publish(1_000)
        feed.settle()
    in_memory = feed.bus.first_kept
    assert feed.store._records[0].seq > in_memory > 7
    taken = feed.take_all(feed.subscribe(**where))
    if "after_seq" in where:
        assert (taken[0].type, taken[0].seq) == ("stream.gap", in_memory - 1)
        del taken[0]
    assert numbers(taken) == list(range(in_memory, 9_001))


def test_a_number_that_nobody_was_given_begins_now_and_says_so() -> None:
    feed = Feed()
    feed.publish(3)
    feed.settle()
    subscription = feed.subscribe(after_seq=77)
    feed.publish(1)
    taken = feed.take_all(subscription)
    assert [(record.type, record.seq) for record in taken] == [("stream.gap", 3), ("item.delta", 4)]


def test_a_number_that_was_given_out_but_not_published_yet_is_not_repeated() -> None:
    feed = Feed()
    feed.publish(3)  # recorded, and the news of it is on its way
    subscription = feed.subscribe(after_seq=3)
    feed.publish(1)
    assert numbers(feed.take_all(subscription)) == [4]


def test_a_store_that_cannot_be_read_ends_the_subscription() -> None:
    news: list[None] = []

    class Broken:
        last_seq = 5

        def read(self, query: EventQuery, done: Callable[[EventPage | Exception], None]) -> None:
            del query
            waiting.append(lambda: done(OSError("gone")))

    waiting: list[Callable[[], None]] = []
    bus = EventBus(Broken())
    subscription = bus.subscribe(EventFilter(), after_seq=0, on_news=lambda: news.append(None))
    waiting.pop()()
    assert subscription.failed == "gone"
    assert subscription.take() == []
    assert (len(news), bus.subscribers) == (1, 0)


def test_a_subscriber_that_raises_hurts_nobody_else() -> None:
    feed = Feed()

    def fail() -> None:
        raise RuntimeError("no")

    bad = feed.bus.subscribe(EventFilter(), on_news=fail)
    good = feed.subscribe()
    feed.publish(2)
    assert numbers(feed.take_all(good)) == [1, 2]
    assert bad.failed is not None
    assert feed.bus.subscribers == 1


def test_a_closed_one_hears_nothing_more() -> None:
    feed = Feed()
    subscription = feed.subscribe()
    subscription.close()
    feed.publish(2)
    assert feed.take_all(subscription) == []
    assert feed.bus.subscribers == 0


def test_news_is_told_once_until_it_is_taken() -> None:
    feed = Feed()
    news: list[None] = []
    subscription = feed.bus.subscribe(EventFilter(), on_news=lambda: news.append(None))
    for _ in range(3):
        feed.publish()
        feed.settle()
    assert len(news) == 1
    subscription.take()
    feed.publish()
    feed.settle()
    assert len(news) == 2


def test_without_subscribers_nothing_is_read() -> None:
    feed = Feed()
    feed.publish(10)
    feed.settle()
    assert all(batch._records is None for batch in feed.bus._kept)


def test_who_begins_with_what_is_in_memory_has_not_fallen_behind() -> None:
    feed = Feed()
    feed.publish(3 * MAX_BEHIND)
    feed.settle()
    assert feed.bus.first_kept == 1
    subscription = feed.subscribe(after_seq=0)
    feed.publish(2)
    feed.settle()
    assert not subscription.is_cut
    assert numbers(feed.take_all(subscription)) == list(range(1, feed.told + 1))
    assert subscription.is_live


def test_memory_that_moves_on_while_it_is_read_leaves_out_nothing() -> None:
    feed = Feed()
    feed.publish(3 * MAX_BEHIND)
    feed.settle()
    subscription = feed.subscribe(after_seq=0)
    taken = subscription.take(10)
    for _ in range(9):
        feed.publish(1_000)
        feed.settle()
    assert feed.bus.first_kept > 3 * MAX_BEHIND
    assert numbers(taken + feed.take_all(subscription)) == list(range(1, feed.told + 1))


@pytest.mark.parametrize("kept", [0, 3])
def test_what_the_store_has_lost_is_told_as_a_gap_and_not_asked_for_again_and_again(kept: int) -> None:
    """Its files were removed, or numbers were passed over after a power cut: there is nothing before what is in memory."""
    feed = Feed()
    feed.publish(6_000)
    feed.settle()
    feed.publish(6_000)
    feed.settle()
    del feed.store._records[kept:]
    first_kept = feed.bus.first_kept
    assert first_kept > kept + 1
    subscription = feed.subscribe(after_seq=kept and 1)
    taken: list[Record] = []
    for _ in range(10):
        if feed.posts:
            feed.posts.popleft()()
        taken += subscription.take(10_000)
        if subscription.is_live:
            break
    assert subscription.is_live
    taken += feed.take_all(subscription)
    before = list(range(2, kept + 1))
    assert numbers(taken) == [*before, first_kept - 1, *range(first_kept, feed.told + 1)]
    assert taken[len(before)].type == "stream.gap"


def test_batches_without_a_wanted_type_are_passed_over_and_counted_as_taken() -> None:
    feed = Feed()
    live = feed.subscribe(make_filter(["tokens.used"]))
    feed.publish(3)
    feed.settle()
    assert (live.take(), live.cursor) == ([], 3)
    again = feed.subscribe(make_filter(["tokens.used"]), after_seq=1)
    assert (again.take(), again.cursor, again.is_live) == ([], 3, True)
    feed.store.append([make_note(4, text='{"type":"tokens.used"'), Lost(START_MS, 2)])
    feed.settle()
    assert [(record.type, record.seq) for record in live.take()] == [("stream.gap", 5)]


@given(st.lists(st.sampled_from(["item.delta", "stream.gap", "message.delivered"]), min_size=1), st.booleans())
def test_what_is_passed_over_would_not_have_matched(kinds: list[str], is_wanted: bool) -> None:
    feed = Feed()
    wanted = make_filter(["message.delivered"] if is_wanted else ["tokens.used"])
    live = feed.subscribe(wanted)
    for kind in kinds:
        note = (
            make_note(1)
            if kind == "item.delta"
            else Lost(START_MS)
            if kind == "stream.gap"
            else Handover(0, START_MS, "", "B", "m", "B", 1, 0)
        )
        feed.store.append([note])
    feed.settle()
    everything = feed.take_all(feed.subscribe(after_seq=0))
    assert [record.seq for record in live.take()] == [record.seq for record in everything if wanted.matches(record)]
