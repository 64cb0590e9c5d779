"""The part of the conformance suite about what waits for somebody, and about the ids a sender has used."""

from __future__ import annotations

from msgspec.structs import replace

from agent_relay.ports.store import BacklogRow, Batch, MessageRow, Owed, Snapshot, StreamRow, Waiting
from tests.contract.store_case import StoreCase
from tests.support.store_driver import StoreDriver, make_message, make_trail, make_waiting, number_at, time_at

_BOTH = (("Bob", 1), ("Carol", 1))


def _row(recipient: str, last: int, done: int = 0, above: tuple[int, ...] = (), **fields: str) -> StreamRow:
    return StreamRow(fields.get("topic", ""), fields.get("sender", "Alice"), recipient, last, 0, 0, done, above)


def _streams(snapshot: Snapshot) -> dict[tuple[str, str, str], StreamRow]:
    return {(row.topic, row.sender, row.recipient): row for row in snapshot.streams}


class StoreBacklogContract(StoreCase):
    def listed(self, driver: StoreDriver, count: int, recipients: tuple[tuple[str, int], ...] = _BOTH) -> list[MessageRow]:
        """Messages that are stored and wait for all their recipients."""
        messages = [make_message(place, recipients=recipients) for place in range(1, count + 1)]
        waiting = [make_waiting(row, name) for row in messages for name, _ in row.recipients]
        driver.write(Batch(messages=messages, backlog_added=waiting, checkpoint=messages[-1].number))
        return messages

    # ---- what opening brings into the backlog

    def test_what_came_after_the_checkpoint_waits_after_a_restart(self, driver: StoreDriver) -> None:
        messages = [make_message(place, recipients=(("Bob", place),)) for place in range(1, 8)]
        driver.put(*messages)
        assert driver.owed() == []  # until then it is the core that knows
        snapshot = self.reopen(driver)
        assert snapshot.last_number == number_at(7)
        assert snapshot.waiting == [Waiting("Bob", 7, sum(len(row.tail) for row in messages))]
        assert driver.owed() == [Owed(row, "Bob", place, 0) for place, row in enumerate(messages, 1)]
        assert self.reopen(driver) == snapshot
        assert len(driver.owed()) == 7

    def test_what_is_before_the_checkpoint_and_not_listed_is_done(self, driver: StoreDriver) -> None:
        messages = [make_message(place) for place in range(1, 8)]
        driver.write(
            Batch(
                messages=messages, backlog_added=[make_waiting(messages[1]), make_waiting(messages[3])], checkpoint=number_at(5)
            )
        )
        self.reopen(driver)
        assert driver.owed_places() == [(2, "Bob"), (4, "Bob"), (6, "Bob"), (7, "Bob")]

    def test_what_is_after_the_checkpoint_and_listed_waits_once(self, driver: StoreDriver) -> None:
        messages = [make_message(1), make_message(2)]
        driver.write(Batch(messages=messages, backlog_added=[make_waiting(messages[1])]))
        snapshot = self.reopen(driver)
        assert [row.count for row in snapshot.waiting] == [2]
        assert driver.owed_places() == [(1, "Bob"), (2, "Bob")]

    def test_what_the_cursors_say_is_done_does_not_wait(self, driver: StoreDriver) -> None:
        messages = [make_message(place, recipients=(("Bob", place), ("carol", place))) for place in range(1, 9)]
        driver.write(Batch(messages=messages, streams=[_row("bob", 8, done=3, above=(5, 7)), _row("Carol", 8, done=8)]))
        snapshot = self.reopen(driver)
        assert [row.count for row in snapshot.waiting] == [3]
        assert driver.owed_places() == [(4, "Bob"), (6, "Bob"), (8, "Bob")]

    def test_a_cursor_counts_for_its_own_stream_alone(self, driver: StoreDriver) -> None:
        driver.put(
            make_message(1, recipients=(("Bob", 5),)),
            make_message(2, recipients=(("Bob", 5),), topic="code"),
            make_message(3, recipients=(("Bob", 5),), sender="Eve"),
            make_message(4, recipients=(("Carol", 5),)),
        )
        driver.write(Batch(streams=[_row("Bob", 5, done=5), _row("Bob", 5, above=(5,), sender="eve")]))
        self.reopen(driver)
        assert driver.owed_places() == [(2, "Bob"), (4, "Carol")]

    def test_the_streams_cover_the_numbers_of_what_was_stored(self, driver: StoreDriver) -> None:
        """Also of what is done: a number is never given out twice."""
        messages = [make_message(place, recipients=(("Bob", 10 + place), ("Carol", place))) for place in range(1, 4)]
        bob = StreamRow("", "alice", "bob", last_seq=11, wire_seq=11, heard_seq=10, done_seq=9, done_above=(12, 13))
        far = _row("Dave", 99)
        dave = make_message(4, recipients=(("Dave", 7),))
        driver.write(Batch(messages=[*messages, dave], streams=[bob, far]))
        streams = _streams(self.reopen(driver))
        assert streams["", "alice", "bob"] == replace(bob, last_seq=13)
        assert streams["", "Alice", "Carol"] == _row("Carol", 3)
        assert streams["", "Alice", "Dave"] == far
        assert len(streams) == 3

    def test_a_message_for_nobody_waits_for_nobody(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, recipients=(), target="*"))
        snapshot = self.reopen(driver)
        assert (snapshot.waiting, snapshot.streams, snapshot.last_number) == ([], [], number_at(1))
        assert driver.prune(time_at(9)) == 1

    def test_what_waits_is_counted_for_each_recipient(self, driver: StoreDriver) -> None:
        messages = self.listed(driver, 3)
        driver.put(make_message(4, recipients=(("bob", 2),)))
        size = sum(len(row.tail) for row in messages)
        found = {row.recipient.lower(): (row.count, row.size) for row in self.reopen(driver).waiting}
        assert found == {"bob": (4, size + len(make_message(4).tail)), "carol": (3, size)}

    # ---- what is written into it

    def test_entries_come_and_go_for_each_recipient(self, driver: StoreDriver) -> None:
        self.listed(driver, 2)
        driver.write(Batch(backlog_removed=[("BOB", number_at(1)), ("Carol", number_at(2)), ("Dave", number_at(1))]))
        assert driver.owed_places() == [(1, "Carol"), (2, "Bob")]

    def test_one_that_is_removed_and_added_in_a_batch_waits(self, driver: StoreDriver) -> None:
        (message,) = self.listed(driver, 1, (("Bob", 1),))
        driver.write(Batch(backlog_removed=[("Bob", message.number)], backlog_added=[make_waiting(message)]))
        assert driver.owed_places() == [(1, "Bob")]

    def test_one_that_is_there_already_stays_as_it_is(self, driver: StoreDriver) -> None:
        (message,) = self.listed(driver, 1, (("Bob", 1),))
        driver.write(Batch(backlog_added=[BacklogRow("bob", message.number, 9, 9, 9)]))
        assert driver.owed() == [Owed(message, "Bob", 1, 0)]
        assert self.reopen(driver).waiting == [Waiting("Bob", 1, len(message.tail))]

    # ---- reading it

    def test_pages_of_the_backlog_follow_each_other_without_gap_or_repeat(self, driver: StoreDriver) -> None:
        self.listed(driver, 7, (("Bob", 1), ("anne", 1), ("Carol", 1)))
        expected = [(place, name) for place in range(1, 8) for name in ("anne", "Bob", "Carol")]
        assert driver.owed_places() == expected
        for limit in (1, 2, 3, 5, 20, 21, 22):
            found: list[tuple[int, str]] = []
            after = (0, "")
            while page := driver.owed(limit=limit, after=after):
                assert len(page) <= limit
                found += [(each.message.number, each.recipient) for each in page]
                after = found[-1]
            assert found == [(number_at(place), name) for place, name in expected]
        assert driver.owed(limit=0) == []

    def test_a_recipients_part_of_the_backlog(self, driver: StoreDriver) -> None:
        self.listed(driver, 5)
        assert driver.owed_places(recipient="bob") == [(place, "Bob") for place in range(1, 6)]
        assert driver.owed_places(recipient="bob", limit=2) == [(1, "Bob"), (2, "Bob")]
        assert driver.owed_places(recipient="bob", after=(number_at(2), "Bob"), limit=2) == [(3, "Bob"), (4, "Bob")]
        assert driver.owed_places(recipient="carol", after=(number_at(2), "Bob"), limit=2) == [(2, "Carol"), (3, "Carol")]
        assert driver.owed_places(recipient="bob", after=(number_at(2), "Carol"), limit=2) == [(3, "Bob"), (4, "Bob")]
        assert driver.owed(recipient="Eve") == []

    def test_what_waits_from_a_sender(self, driver: StoreDriver) -> None:
        messages = [make_message(place, recipients=_BOTH, sender="Alice" if place % 2 else "Eve") for place in range(1, 6)]
        driver.put(*messages)
        self.reopen(driver)
        assert driver.owed_places(sender="eve") == [(2, "Bob"), (2, "Carol"), (4, "Bob"), (4, "Carol")]
        assert driver.owed_places(sender="EVE", recipient="carol") == [(2, "Carol"), (4, "Carol")]
        assert driver.owed_places(sender="alice", limit=2, after=(number_at(1), "Carol")) == [(3, "Bob"), (3, "Carol")]
        assert driver.owed(sender="Bob") == []

    def test_what_has_expired(self, driver: StoreDriver) -> None:
        ends = [500, 100, 400, 200, 300]
        messages = [make_message(place, recipients=_BOTH, expires_at=time_at(end)) for place, end in enumerate(ends, 1)]
        driver.put(*messages)
        self.reopen(driver)
        assert driver.owed_places(expired_at=time_at(300)) == [(place, name) for place in (2, 4, 5) for name in ("Bob", "Carol")]
        assert driver.owed_places(expired_at=time_at(300), recipient="bob") == [(2, "Bob"), (4, "Bob"), (5, "Bob")]
        assert driver.owed_places(expired_at=time_at(300), after=(number_at(4), "Bob"), limit=2) == [(4, "Carol"), (5, "Bob")]
        assert driver.owed(expired_at=time_at(100) - 1) == []

    def test_many_that_have_expired_come_in_order_too(self, driver: StoreDriver) -> None:
        count = 2_500
        messages = [make_message(place, expires_at=time_at(9_000 - place)) for place in range(1, count + 1)]
        waiting = [make_waiting(row) for row in messages]
        driver.write(Batch(messages=messages, backlog_added=waiting, checkpoint=number_at(count)))
        page = driver.owed_places(expired_at=time_at(9_000), after=(number_at(7), "Bob"), limit=3)
        assert page == [(8, "Bob"), (9, "Bob"), (10, "Bob")]
        assert driver.owed_places(expired_at=time_at(9_000 - count), limit=3) == [(count, "Bob")]
        assert len(driver.owed(expired_at=time_at(9_000), limit=10_000)) == count

    def test_how_often_each_was_sent_again(self, driver: StoreDriver) -> None:
        messages = [make_message(place, recipients=(("Bob", place), ("Carol", place))) for place in range(1, 5)]
        trail = [
            make_trail(2, 2, time_at(5), "sent"),
            make_trail(2, 2, time_at(6), "resent"),
            make_trail(2, 2, time_at(7), "resent", sender="alice"),
            make_trail(3, 3, time_at(7), "resent", "carol"),
            make_trail(1, 4, time_at(8), "resent"),  # of a run, and of another topic: not of one of them
            make_trail(4, 4, time_at(8), "resent", topic="code"),
        ]
        driver.write(Batch(messages=messages, trail=trail))
        self.reopen(driver)
        assert [each.resent for each in driver.owed(recipient="Bob")] == [0, 2, 0, 0]
        assert [each.resent for each in driver.owed(recipient="Carol")] == [0, 0, 1, 0]

    # ---- the ids a sender has used

    def used(self, driver: StoreDriver, count: int) -> None:
        """By Alice and Carol in turn, a batch each."""
        for place in range(1, count + 1):
            driver.put(make_message(place, sender="Alice" if place % 2 else "Carol"))

    def test_a_senders_ids_come_oldest_first_with_their_numbers(self, driver: StoreDriver) -> None:
        self.used(driver, 9)
        expected = [(f"c-{place}", number_at(place)) for place in (1, 3, 5, 7, 9)]
        assert list(driver.seen("alice").items()) == expected
        self.reopen(driver)
        assert list(driver.seen("ALICE").items()) == expected
        assert driver.seen("Bob") == {}

    def test_a_senders_newest_ids_are_the_ones_that_are_given(self, driver: StoreDriver) -> None:
        self.used(driver, 9)
        assert list(driver.seen("Alice", limit=2)) == ["c-7", "c-9"]
        assert list(driver.seen("Alice", since=time_at(5))) == ["c-5", "c-7", "c-9"]
        assert list(driver.seen("Alice", since=time_at(5) + 1)) == ["c-7", "c-9"]
        assert list(driver.seen("Alice", since=time_at(5), limit=1)) == ["c-9"]
        assert driver.seen("Alice", limit=0) == {}
        assert driver.seen("Alice", since=time_at(10)) == {}

    def test_how_old_an_id_is_its_number_tells(self, driver: StoreDriver) -> None:
        """As the core reckons: a clock that was set back makes nothing older."""
        driver.put(make_message(8), make_message(9, ts=time_at(2)))
        assert list(driver.seen("Alice", since=time_at(8))) == ["c-8", "c-9"]

    def test_an_id_that_was_used_again_stands_for_the_later_message(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, client_id="same"), make_message(2, client_id="other"))
        driver.put(make_message(3, client_id="same"))
        assert driver.seen("Alice") == {"other": number_at(2), "same": number_at(3)}

    def test_ids_may_be_any_text(self, driver: StoreDriver) -> None:
        ids = ["", 'a "quoted" \\ one', "[1, 2]", "ünïcode ✓ 🙂", "line\nbreak", "\u2028", "null"]
        driver.put(*(make_message(place, client_id=text) for place, text in enumerate(ids, 1)))
        assert list(driver.seen("Alice")) == ids

    def test_thousands_of_ids_are_given_in_order(self, driver: StoreDriver) -> None:
        places = range(1, 10_001)
        for start in range(0, 10_000, 400):
            part = places[start : start + 400]
            driver.put(*(make_message(place, sender="Eve" if place % 10 == 0 else "Alice") for place in part))
        mine = [place for place in places if place % 10]
        others = [place for place in places if not place % 10]
        for _ in range(2):
            assert list(driver.seen("Alice", limit=50_000).values()) == [number_at(place) for place in mine]
            assert list(driver.seen("eve", limit=50_000).values()) == [number_at(place) for place in others]
            assert list(driver.seen("Eve", limit=800)) == [f"c-{place}" for place in others[-800:]]
            assert list(driver.seen("Alice", time_at(2_001), 50_000)) == [f"c-{place}" for place in mine if place > 2_000]
            assert list(driver.seen("Alice", time_at(2_001), 7_000)) == [f"c-{place}" for place in mine[-7_000:]]
            self.reopen(driver)

    def test_a_batch_that_failed_used_no_ids(self, driver: StoreDriver) -> None:
        driver.put(make_message(1))
        failed = Batch(messages=[make_message(1, client_id="again"), make_message(2, client_id="with-it")])
        assert driver.call(driver.store.write, failed) is not None
        assert driver.seen("Alice") == {"c-1": number_at(1)}

    def test_the_ids_of_what_was_erased_are_forgotten(self, driver: StoreDriver) -> None:
        places = range(1, 5_001)
        for start in range(0, 5_000, 500):
            rows = [
                make_message(
                    place, sender=("Alice", "Bob", "Carol")[place % 3], recipients=((("Bob", "Dave")[place % 2], place),)
                )
                for place in places[start : start + 500]
            ]
            driver.write(Batch(messages=rows, checkpoint=rows[-1].number))
        while driver.erase("Bob", 500) == 500:
            pass
        for _ in range(2):
            assert driver.seen("Bob", limit=10_000) == {}
            left = [place for place in places if place % 3 == 2 and place % 2]
            assert list(driver.seen("Carol", limit=10_000)) == [f"c-{place}" for place in left]
            self.reopen(driver)
        driver.put(make_message(5_001, sender="Bob"))
        assert list(driver.seen("bob")) == ["c-5001"]

    def test_the_ids_of_what_stays_outlive_pruning(self, driver: StoreDriver) -> None:
        rows = [make_message(place) for place in range(1, 11)]
        driver.write(Batch(messages=rows, checkpoint=rows[-1].number))
        assert driver.prune(time_at(6)) == 5
        assert list(driver.seen("Alice", since=time_at(6))) == [f"c-{place}" for place in range(6, 11)]
        self.reopen(driver)
        assert list(driver.seen("Alice", since=time_at(6))) == [f"c-{place}" for place in range(6, 11)]
