"""The conformance suite of `ports.store.MessageStore`: what any store must do, as tests that any store can run.

    class TestMyStore(MessageStoreContract):
        def make_store(self, post: Post) -> MessageStore:
            return MyStore(self.folder / "messages.db", post)

`make_store` is called once a test, and again by `reopen` for a store that claims to be `persistent`; a store that is not
is closed and opened again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from agent_relay.ports.store import (
    Batch,
    DeadLetterRow,
    MemberRow,
    MessageQuery,
    MessageRow,
    MessageStore,
    Page,
    SeenId,
    Snapshot,
    SpentToken,
    StoreError,
    StreamRow,
    SubscriptionRow,
)
from agent_relay.testing.store_driver import (
    START_MS,
    Post,
    StoreDriver,
    make_agent,
    make_message,
    make_stream,
    make_trail,
    number_at,
    place_of,
    time_at,
)


class MessageStoreContract:
    """Subclass it, name the subclass `Test…`, implement `make_store`."""

    persistent: ClassVar[bool] = True
    folder: Path

    def make_store(self, post: Post) -> MessageStore:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _keep_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @pytest.fixture
    def driver(self, _keep_folder: None) -> Iterator[StoreDriver]:
        driver = StoreDriver(self.make_store)
        driver.open()
        yield driver
        driver.store.close()

    def reopen(self, driver: StoreDriver, dedup_ids: int = 1_000, dedup_since: int = 0) -> Snapshot:
        """The snapshot after a restart; `driver` goes on with the store that was opened."""
        driver.store.close()
        if self.persistent:
            driver.replace_store()
        return driver.open(dedup_ids, dedup_since)

    # ---- opening

    def test_a_new_store_is_empty(self) -> None:
        driver = StoreDriver(self.make_store)
        assert driver.open() == Snapshot()
        assert driver.page() == Page([])
        assert driver.store.stats().messages == 0
        driver.store.close()

    def test_closing_twice_is_closing_once(self, driver: StoreDriver) -> None:
        driver.store.close()
        driver.store.close()

    def test_after_closing_every_call_is_answered_with_an_error(self, driver: StoreDriver) -> None:
        driver.store.close()
        store, message = driver.store, make_message(1)
        assert isinstance(driver.call(store.write, Batch(messages=[message])), StoreError)
        assert isinstance(driver.call(store.find, MessageQuery()), StoreError)
        assert isinstance(driver.call(store.find, MessageQuery(search="hello")), StoreError)
        assert isinstance(driver.call(store.fetch, [1]), StoreError)
        assert isinstance(driver.call(store.trail, message), StoreError)
        assert isinstance(driver.call(store.steps, [message]), StoreError)
        assert isinstance(driver.call(store.conversations, 5), StoreError)
        assert isinstance(driver.call(store.replay, "Bob", {}), StoreError)
        assert isinstance(driver.call(store.dead_letters, 5), StoreError)
        assert isinstance(driver.call(store.prune, 0, 5), StoreError)

    def test_closing_makes_everything_given_to_write_durable(self, driver: StoreDriver) -> None:
        outcomes: list[StoreError | None] = []
        for place in range(1, 201):
            driver.store.write(Batch(messages=[make_message(place)]), outcomes.append)
        driver.store.close()
        driver.run_ready()
        assert outcomes == [None] * 200
        assert [place_of(row) for row in self.reopen(driver).open_messages] == list(range(1, 201))

    # ---- writing

    def test_a_message_comes_back_as_it_was_written(self, driver: StoreDriver) -> None:
        message = make_message(
            1, "grüße", (("Bob", 4), ("Carol", 9)), topic="code.review", thread="t-1", kind="action", priority=2, queued=1,
            skipped=("Dave", "Eve"), client_id='odd "id" \\ ✓', target="#dev",
        )  # fmt: skip
        driver.put(message)
        assert driver.fetch(message.number) == [message]
        assert driver.page().messages == [message]
        assert self.reopen(driver).open_messages == [message]

    def test_a_message_without_recipients_is_kept(self, driver: StoreDriver) -> None:
        message = make_message(1, recipients=(), target="*")
        driver.put(message)
        assert driver.fetch(message.number) == [message]

    def test_an_empty_thread_is_not_the_same_as_none(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, thread=""), make_message(2, thread=None))
        assert [row.thread for row in driver.page().messages] == [None, ""]
        assert driver.find(thread="") == [1]

    def test_a_huge_body_is_kept_and_found(self, driver: StoreDriver) -> None:
        message = make_message(1, "start " + "x" * 1_000_000 + " needle")
        driver.put(message, make_message(2))
        assert driver.fetch(message.number) == [message]
        assert driver.find(search="needle") == [1]

    def test_a_batch_of_thousands_is_kept_in_order(self, driver: StoreDriver) -> None:
        messages = [make_message(place, thread="t" if place % 7 == 0 else None) for place in range(1, 3_001)]
        driver.put(*messages)
        assert self.reopen(driver).open_messages == messages
        assert driver.store.stats().messages == 3_000

    def test_done_is_called_once_for_every_write_in_order(self, driver: StoreDriver) -> None:
        order: list[int] = []
        for place in range(1, 101):
            driver.store.write(Batch(messages=[make_message(place)]), lambda _, place=place: order.append(place))  # type: ignore[misc]
        driver.wait_until(lambda: len(order) == 100)
        driver.store.close()
        driver.run_ready()
        assert order == list(range(1, 101))

    def test_done_is_called_by_the_loop_alone(self, driver: StoreDriver) -> None:
        outcomes: list[object] = []
        driver.store.write(Batch(messages=[make_message(1)]), outcomes.append)
        driver.store.find(MessageQuery(), outcomes.append)
        driver.store.close()
        assert outcomes == []
        driver.run_ready()
        assert len(outcomes) == 2

    def test_a_number_given_twice_fails_its_whole_batch_and_no_other(self, driver: StoreDriver) -> None:
        outcomes: list[StoreError | None] = []
        first, again, other = make_message(1), make_message(1, "again"), make_message(3)
        driver.store.write(Batch(messages=[first]), outcomes.append)
        driver.store.write(Batch(messages=[again, make_message(2)], agents=[make_agent("Eve")]), outcomes.append)
        driver.store.write(Batch(messages=[other]), outcomes.append)
        driver.wait_until(lambda: len(outcomes) == 3)
        assert [type(outcome) for outcome in outcomes] == [type(None), StoreError, type(None)]
        snapshot = self.reopen(driver)
        assert snapshot.open_messages == [first, other]
        assert snapshot.agents == []

    def test_an_empty_batch_is_written(self, driver: StoreDriver) -> None:
        driver.write(Batch())

    # ---- finding

    def test_the_newest_come_first(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in range(1, 6)))
        assert driver.find() == [5, 4, 3, 2, 1]

    def test_pages_follow_each_other_without_gap_or_repeat(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in range(1, 12)))
        seen: list[int] = []
        before: int | None = None
        while True:
            page = driver.page(limit=3, before=before)
            seen += [place_of(row) for row in page.messages]
            before = page.next_before
            if before is None:
                break
        assert seen == list(range(11, 0, -1))

    def test_a_page_that_ends_with_the_last_message_has_no_next(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in range(1, 4)))
        assert driver.page(limit=3).next_before is None
        assert driver.page(limit=2).next_before == number_at(2)
        assert driver.page(limit=0) == Page([])

    def test_a_page_of_a_filter_continues_with_the_filter(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place, sender="Alice" if place % 2 else "Carol") for place in range(1, 10)))
        first = driver.page(sender="alice", limit=3)
        assert [place_of(row) for row in first.messages] == [9, 7, 5]
        assert driver.find(sender="alice", limit=3, before=first.next_before) == [3, 1]

    def test_names_are_found_without_regard_to_case(self, driver: StoreDriver) -> None:
        driver.put(make_message(1), make_message(2, sender="Carol", recipients=(("Alice", 1),)), make_message(3, sender="Dave"))
        assert driver.find(with_agent="ALICE") == [2, 1]
        assert driver.find(sender="aLiCe") == [1]
        assert driver.find(recipient="alice") == [2]
        assert driver.find(recipient="BOB") == [3, 1]
        assert driver.find(with_agent="Al") == []

    def test_every_recipient_finds_a_broadcast(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, recipients=tuple((f"Agent{index}", 1) for index in range(300)), target="*"))
        assert driver.find(recipient="agent299") == [1]
        assert driver.find(with_agent="Agent0") == [1]
        assert driver.find(target="*") == [1]

    def test_filters_are_all_required(self, driver: StoreDriver) -> None:
        driver.put(
            make_message(1, "red fish"),
            make_message(2, "red bird", sender="Carol"),
            make_message(3, "red fish", sender="Carol", recipients=(("Alice", 1), ("Bob", 1)), topic="sea", thread="t"),
        )
        assert driver.find(with_agent="Alice", sender="Carol") == [3]
        assert driver.find(sender="Carol", recipient="Bob", search="fish") == [3]
        assert driver.find(with_agent="Alice", search="bird") == []
        assert driver.find(topic="sea", thread="t", sender="Carol") == [3]
        assert driver.find(topic="sea", thread="u") == []

    def test_targets_topics_and_threads_are_exact(self, driver: StoreDriver) -> None:
        driver.put(
            make_message(1, target="#dev"),
            make_message(2, target="#Dev"),
            make_message(3, target="*", topic="code.review"),
            make_message(4, target="Bob", topic="code", thread="T"),
            make_message(5, target="Bob,Carol"),
            make_message(6, target="", topic="code"),
        )
        assert driver.find(target="#dev") == [1]
        assert driver.find(target="*") == [3]
        assert driver.find(target="Bob,Carol") == [5]
        assert driver.find(target="") == [6]
        assert driver.find(topic="code") == [6, 4]
        assert driver.find(topic="") == [5, 2, 1]
        assert driver.find(thread="T") == [4]
        assert driver.find(thread="t") == []

    def test_since_is_inclusive_and_until_is_exclusive(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in range(1, 8)))
        assert driver.find(since=time_at(3), until=time_at(5)) == [4, 3]
        assert driver.find(since=time_at(6)) == [7, 6]
        assert driver.find(until=time_at(2)) == [1]
        assert driver.find(with_agent="bob", since=time_at(7)) == [7]
        assert driver.find(since=10**30) == []
        assert driver.find(until=-(10**30)) == []
        assert driver.find(before=10**30, limit=1) == [7]

    def test_time_ranges_hold_when_the_clock_was_set_back(self, driver: StoreDriver) -> None:
        early = time_at(1) - 600_000
        for message in (make_message(1), make_message(2, ts=early), make_message(3)):
            driver.put(message)  # each its own batch: a batch is one moment
        rows = driver.page(until=time_at(0)).messages
        assert [row.number for row in rows] == [number_at(2)]
        assert driver.find(since=time_at(0)) == [3, 1]

    def test_everything_whose_write_is_done_is_found(self, driver: StoreDriver) -> None:
        for place in range(1, 31):
            driver.put(make_message(place, f"word{place}"))
            assert driver.find(search=f"word{place}") == [place]
            assert driver.find(with_agent="Bob", limit=1) == [place]

    def test_a_find_after_a_write_that_is_not_done_yet_still_answers(self, driver: StoreDriver) -> None:
        outcomes: list[object] = []
        for place in range(1, 1_201):
            driver.store.write(Batch(messages=[make_message(place)]), outcomes.append)
        driver.store.find(MessageQuery(search="hello", limit=5_000), outcomes.append)
        driver.wait_until(lambda: len(outcomes) == 1_201)
        page = next(outcome for outcome in outcomes if outcome is not None)
        assert isinstance(page, Page)
        found = [place_of(row) for row in page.messages]
        assert found == list(range(len(found), 0, -1))

    # ---- searching

    def test_all_words_must_occur_in_any_order_and_case(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, "The quick brown fox"), make_message(2, "a quick blue bird"), make_message(3, "nothing"))
        assert driver.find(search="quick") == [2, 1]
        assert driver.find(search="FOX quick") == [1]
        assert driver.find(search="quick  missing") == []

    def test_the_last_word_may_be_a_beginning(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, "deploy the frontend"), make_message(2, "frontier"))
        assert driver.find(search="deploy front") == [1]
        assert driver.find(search="front deploy") == []

    def test_words_with_punctuation_are_found_side_by_side(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, "please review src/auth.py today"), make_message(2, "py auth src"))
        assert driver.find(search="auth.py") == [1]
        assert driver.find(search="src/auth.py review") == [1]

    def test_bodies_of_every_script_are_found(self, driver: StoreDriver) -> None:
        driver.put(
            make_message(1, "Größe naïve"), make_message(2, "привет мир"), make_message(3, "日本語 テスト"), make_message(4, "🎉")
        )
        assert driver.find(search="größe") == [1]
        assert driver.find(search="naive") == [1]
        assert driver.find(search="МИР") == [2]
        assert driver.find(search="日本語") == [3]

    def test_escapes_in_the_stored_text_are_no_part_of_the_words(self, driver: StoreDriver) -> None:
        tail = b'"from":"Alice","payload":{"body":"line\\none\\u00e9 \\"quoted\\""}}'
        driver.put(make_message(1, tail=tail))
        assert driver.find(search="line") == [1]
        assert driver.find(search="oneé") == [1]
        assert driver.find(search="quoted") == [1]
        assert driver.find(search="nline") == []

    def test_only_the_body_is_searched(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, tail=b'"from":"Alice","payload":{"kind":"secret","body":"open","data":{"body":"hidden"}}}'))
        assert driver.find(search="open") == [1]
        assert driver.find(search="secret") == []
        assert driver.find(search="hidden") == []

    @pytest.mark.parametrize("search", ["", "   ", "...", '"', "'", "*", "-", "( )", "🎉", "\0", "\ud800", "^^^", '""', "_"])
    def test_a_search_without_words_finds_nothing(self, driver: StoreDriver, search: str) -> None:
        driver.put(make_message(1, "anything * \" ' - ( 🎉"))
        assert driver.find(search=search) == []

    @pytest.mark.parametrize(
        "search",
        [
            'hello"',
            "hello*",
            "hello AND",
            "(hello",
            "NEAR(hello",
            "body:hello",
            "hello -world",
            "^hello",
            "he\0llo",
            "{hello}",
            "hello + '",
        ],
    )
    def test_nothing_typed_is_syntax(self, driver: StoreDriver, search: str) -> None:
        driver.put(make_message(1, "unrelated"))
        assert driver.find(search=search) == []

    def test_a_pasted_page_is_a_search_too(self, driver: StoreDriver) -> None:
        driver.put(make_message(1, "word " * 50))
        assert driver.find(search="word " * 10_000) == [1]
        assert driver.find(search="w" * 100_000) == []

    def test_a_message_without_a_text_body_disturbs_no_search(self, driver: StoreDriver) -> None:
        broken = [b'"from":"A","payload":{}}', b'"from":"A","payload":{"body":', b"\xff\xfe", b""]
        driver.put(*(make_message(place, tail=tail) for place, tail in enumerate(broken, 1)), make_message(9, "whole"))
        assert driver.find(search="whole") == [9]
        assert driver.find(with_agent="Bob") == [9, 4, 3, 2, 1]

    # ---- fetching, replaying

    def test_fetch_gives_what_exists_in_ascending_order(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in range(1, 6)))
        rows = driver.fetch(number_at(4), number_at(99), number_at(2), number_at(4))
        assert [place_of(row) for row in rows] == [2, 4]
        assert driver.fetch() == []

    def test_replay_gives_what_lies_beyond_the_given_sequence(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place, recipients=(("Bob", place),)) for place in range(1, 8)))
        assert driver.replay("bob", {("", "alice"): 4}) == [5, 6, 7]
        assert driver.replay("Bob", {("", "Alice"): 0}) == [1, 2, 3, 4, 5, 6, 7]
        assert driver.replay("Bob", {("", "Alice"): 7}) == []
        assert driver.replay("Bob", {}) == []
        assert driver.replay("Nobody", {("", "Alice"): 0}) == []

    def test_replay_keeps_streams_apart(self, driver: StoreDriver) -> None:
        driver.put(
            make_message(1, recipients=(("Bob", 1),)),
            make_message(2, recipients=(("Bob", 1),), topic="code"),
            make_message(3, recipients=(("Bob", 1), ("Carol", 1)), sender="Dave"),
            make_message(4, recipients=(("Carol", 1),)),
            make_message(5, recipients=(("Carol", 2), ("Bob", 2))),
            make_message(6, sender="Bob", recipients=(("Alice", 1),)),
        )
        assert driver.replay("Bob", {("", "Alice"): 0}) == [1, 5]
        assert driver.replay("Bob", {("", "Alice"): 1, ("", "Dave"): 0}) == [3, 5]
        assert driver.replay("Bob", {("code", "Alice"): 0}) == [2]
        assert driver.replay("Carol", {("", "Alice"): 1}) == [5]

    # ---- the trail

    def test_the_trail_of_a_message_covers_each_of_its_recipients(self, driver: StoreDriver) -> None:
        message = make_message(1, recipients=(("Bob", 5), ("Carol", 2)))
        mine = [
            make_trail(5, 5, 10, "sent", detail="socket"),
            make_trail(1, 9, 20, "acknowledged"),
            make_trail(2, 2, 15, "sent", recipient="Carol"),
        ]
        others = [
            make_trail(1, 4, 11, "sent"),
            make_trail(6, 9, 12, "sent"),
            make_trail(5, 5, 13, "sent", topic="code"),
            make_trail(5, 5, 14, "sent", sender="Dave"),
            make_trail(5, 5, 16, "sent", recipient="Carol"),
        ]
        driver.write(Batch(messages=[message], trail=[*others, *mine]))
        assert driver.trail(message) == [mine[0], mine[2], mine[1]]

    def test_trail_rows_of_one_moment_keep_their_order(self, driver: StoreDriver) -> None:
        rows = [make_trail(1, 1, 10, event) for event in ("sent", "busy", "resent", "acknowledged")]
        driver.write(Batch(trail=rows[:2]))
        driver.write(Batch(trail=rows[2:]))
        assert driver.trail(make_message(1)) == rows
        assert driver.trail(make_message(1, recipients=())) == []

    # ---- dead letters

    def test_the_steps_of_many_messages_come_in_one_answer(self, driver: StoreDriver) -> None:
        one = make_message(1, recipients=(("Bob", 7), ("Carol", 3)))
        two = make_message(2, recipients=(("Bob", 8),))
        rows = [
            make_trail(7, 7, 20, "read", "BOB", sender="alice"),
            make_trail(7, 7, 10, "received"),
            make_trail(3, 3, 15, "received", "Carol"),
            make_trail(1, 9, 5, "sent"),  # of a run: not of one alone
            make_trail(7, 7, 5, "read", topic="t"),  # of another stream
        ]
        driver.write(Batch(messages=[one, two], trail=rows))
        found = driver.ask(driver.store.steps, [two, one])
        assert [[(step.recipient.lower(), step.event) for step in steps] for steps in found] == [
            [],
            [("bob", "received"), ("bob", "read"), ("carol", "received")],
        ]

    # ---- conversations

    def test_conversations_are_counted_and_come_newest_first(self, driver: StoreDriver) -> None:
        driver.write(
            Batch(
                messages=[
                    make_message(1, sender="Alice", target="Bob"),
                    make_message(2, sender="bob", target="ALICE"),
                    make_message(3, target="#dev", thread="t-1"),
                    make_message(4, target="*"),
                    make_message(5, target="Bob,Carol"),
                    make_message(6, target="", topic="code.review"),
                ]
            )
        )
        found = driver.ask(driver.store.conversations, 100)
        assert [(each.kind, each.key, each.count, row.number == each.last) for each, row in found] == [
            ("topic", "code.review", 1, True),
            ("group", "Bob,Carol", 1, True),
            ("all", "*", 1, True),
            ("channel", "#dev", 1, True),
            ("thread", "t-1", 1, True),
            ("pair", "Alice,Bob", 2, True),
        ]
        assert [each.kind for each, _ in driver.ask(driver.store.conversations, 2)] == ["topic", "group"]

    def test_conversations_go_on_counting(self, driver: StoreDriver) -> None:
        driver.write(Batch(messages=[make_message(1, target="Bob")]))
        assert [each.count for each, _ in driver.ask(driver.store.conversations, 5)] == [1]
        driver.write(Batch(messages=[make_message(2, target="Bob"), make_message(3, target="Carol")]))
        assert [(each.key, each.count) for each, _ in driver.ask(driver.store.conversations, 5)] == [
            ("Alice,Carol", 1),
            ("Alice,Bob", 2),
        ]

    def test_what_was_pruned_is_not_counted(self, driver: StoreDriver) -> None:
        driver.write(Batch(messages=[make_message(place, target="Bob") for place in (1, 2, 3)], checkpoint=number_at(3)))
        assert [each.count for each, _ in driver.ask(driver.store.conversations, 5)] == [3]
        driver.ask(driver.store.prune, time_at(3), 10)
        assert [each.count for each, _ in driver.ask(driver.store.conversations, 5)] == [1]

    def test_what_two_wrote_to_each_other_alone(self, driver: StoreDriver) -> None:
        both = (("Bob", 1), ("Carol", 1))
        driver.write(
            Batch(
                messages=[
                    make_message(1, sender="Alice", target="Bob"),
                    make_message(2, sender="BOB", target="alice", recipients=(("Alice", 1),)),
                    make_message(3, sender="Alice", target="*", recipients=both),
                    make_message(4, sender="Alice", target="Carol", recipients=(("Carol", 2),)),
                ]
            )
        )
        for pair in (("alice", "Bob"), ("bob", "ALICE")):
            assert driver.find(between=pair) == [2, 1]
        assert driver.find(between=("Bob", "Carol")) == []
        driver.ask(driver.store.find, MessageQuery(search="hello"))  # now the index has them
        assert driver.find(between=("alice", "Bob")) == [2, 1]

    def test_pages_towards_newer_ones_follow_each_other(self, driver: StoreDriver) -> None:
        driver.write(Batch(messages=[make_message(place) for place in range(1, 6)]))
        for agent in (None, "Bob"):
            first = driver.ask(driver.store.find, MessageQuery(after=number_at(1), limit=2, with_agent=agent))
            assert [row.number for row in first.messages] == [number_at(2), number_at(3)]
            rest = driver.ask(driver.store.find, MessageQuery(after=first.next_before, limit=2, with_agent=agent))
            assert [row.number for row in rest.messages] == [number_at(4), number_at(5)]
            assert rest.next_before is None
            driver.ask(driver.store.find, MessageQuery(search="hello"))  # now the index has them

    def test_pages_towards_newer_ones_pass_from_what_is_indexed_to_what_is_not(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in (1, 2, 3)))
        driver.ask(driver.store.find, MessageQuery(search="hello"))
        driver.put(*(make_message(place) for place in (4, 5)))
        assert driver.find(after=0, with_agent="Bob") == [1, 2, 3, 4, 5]
        assert driver.find(after=number_at(2), with_agent="Bob", limit=2) == [3, 4]

    def test_dead_letters_come_newest_first_with_their_messages(self, driver: StoreDriver) -> None:
        messages = [make_message(place) for place in range(1, 4)]
        letters = [
            DeadLetterRow(row.number, "Bob", at, "DELIVERY_TIMEOUT") for row, at in zip(messages, (30, 10, 20), strict=True)
        ]
        driver.write(Batch(messages=messages, dead_letters=letters))
        assert driver.dead_letters() == [(letters[0], messages[0]), (letters[2], messages[2]), (letters[1], messages[1])]
        assert driver.dead_letters(1) == [(letters[0], messages[0])]
        assert self.reopen(driver).dead_letters == [letters[1], letters[2], letters[0]]

    def test_a_dead_letter_taken_up_again_is_gone(self, driver: StoreDriver) -> None:
        message = make_message(1, recipients=(("Bob", 1), ("Carol", 1)))
        bob, carol = (DeadLetterRow(message.number, name, 5, "REJECTED") for name in ("Bob", "Carol"))
        driver.write(Batch(messages=[message], dead_letters=[bob, carol]))
        driver.write(Batch(dead_letters=[DeadLetterRow(message.number, "Bob", 6, "REJECTED", active=False)]))
        assert driver.dead_letters() == [(carol, message)]
        assert self.reopen(driver).dead_letters == [carol]

    # ---- what the snapshot holds

    def test_agents_and_their_tokens_survive(self, driver: StoreDriver) -> None:
        bob = make_agent(
            "Bob", cli=None, previous_token_hash="old", connected=False, meta=b'{"pid":1}', registered_at=START_MS + 1
        )
        alice = make_agent("Alice")
        spent = SpentToken("spent-1", "Bob", START_MS)
        driver.write(Batch(agents=[bob, alice], spent_tokens=[spent]))
        snapshot = self.reopen(driver)
        assert snapshot.agents == [alice, bob]
        assert snapshot.spent_tokens == [spent]

    def test_an_agent_written_again_replaces_the_row_whatever_its_case(self, driver: StoreDriver) -> None:
        driver.write(Batch(agents=[make_agent("Bob")]))
        later = make_agent("bob", session_id="ses_later")
        driver.write(Batch(agents=[later]))
        assert self.reopen(driver).agents == [later]

    def test_streams_are_replaced_by_their_newest_state(self, driver: StoreDriver) -> None:
        first = make_stream("Alice", "Bob", done_above=(5, 7))
        other = make_stream("Alice", "Bob", topic="code")
        driver.write(Batch(streams=[first, other]))
        newer = StreamRow("", "Alice", "Bob", last_seq=12, wire_seq=12, heard_seq=12, done_seq=12, done_above=())
        driver.write(Batch(streams=[newer]))
        assert _by_key(self.reopen(driver).streams) == [newer, other]
        driver.write(Batch(streams=[first]))
        assert _by_key(self.reopen(driver).streams) == [first, other]

    def test_subscriptions_and_memberships_come_and_go(self, driver: StoreDriver) -> None:
        driver.write(
            Batch(
                subscriptions=[SubscriptionRow("Bob", "code.>"), SubscriptionRow("Bob", "news"), SubscriptionRow("Bob", "news")],
                members=[MemberRow("#dev", ""), MemberRow("#dev", "Bob"), MemberRow("#dev", "Carol")],
            )
        )
        driver.write(Batch(subscriptions=[SubscriptionRow("bob", "news", False)], members=[MemberRow("#dev", "BOB", False)]))
        snapshot = self.reopen(driver)
        assert snapshot.subscriptions == [SubscriptionRow("Bob", "code.>")]
        assert sorted(row.agent for row in snapshot.members) == ["", "Carol"]

    def test_a_forgotten_agent_leaves_nothing_but_its_messages(self, driver: StoreDriver) -> None:
        driver.write(
            Batch(
                messages=[make_message(1)],
                agents=[make_agent("Alice"), make_agent("Bob")],
                spent_tokens=[SpentToken("a", "Alice", 1), SpentToken("b", "Bob", 2)],
                subscriptions=[SubscriptionRow("Alice", "x"), SubscriptionRow("Bob", "x")],
                members=[MemberRow("#dev", ""), MemberRow("#dev", "Alice"), MemberRow("#dev", "Bob")],
                streams=[make_stream("Alice", "Bob"), make_stream("Bob", "Alice"), make_stream("Alice", "Carol")],
            )
        )
        driver.write(Batch(forgotten=["bob"]))
        snapshot = self.reopen(driver)
        assert [row.name for row in snapshot.agents] == ["Alice"]
        assert [row.agent for row in snapshot.spent_tokens] == ["Alice"]
        assert [row.agent for row in snapshot.subscriptions] == ["Alice"]
        assert sorted(row.agent for row in snapshot.members) == ["", "Alice"]
        assert snapshot.streams == [make_stream("Alice", "Carol")]
        assert driver.find(with_agent="Bob") == [1]

    def test_a_name_may_be_forgotten_and_registered_in_one_batch(self, driver: StoreDriver) -> None:
        driver.write(Batch(agents=[make_agent("Bob")], streams=[make_stream("Alice", "Bob")]))
        driver.write(Batch(forgotten=["Bob"], agents=[make_agent("BOB")]))
        snapshot = self.reopen(driver)
        assert [row.name for row in snapshot.agents] == ["BOB"]
        assert snapshot.streams == []

    def test_open_messages_are_the_backlog_and_what_came_after_the_checkpoint(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in range(1, 8)))
        assert [place_of(row) for row in self.reopen(driver).open_messages] == [1, 2, 3, 4, 5, 6, 7]
        driver.write(Batch(backlog_added=[number_at(2), number_at(4)], checkpoint=number_at(5)))
        snapshot = self.reopen(driver)
        assert [place_of(row) for row in snapshot.open_messages] == [2, 4, 6, 7]
        assert snapshot.backlog == [number_at(2), number_at(4)]
        assert snapshot.checkpoint == number_at(5)
        assert snapshot.last_number == number_at(7)
        driver.write(Batch(backlog_removed=[number_at(2)], backlog_added=[number_at(6)], checkpoint=number_at(7)))
        snapshot = self.reopen(driver)
        assert [place_of(row) for row in snapshot.open_messages] == [4, 6]
        assert snapshot.backlog == [number_at(4), number_at(6)]

    def test_a_backlog_entry_beyond_the_checkpoint_is_not_listed_twice(self, driver: StoreDriver) -> None:
        driver.write(Batch(messages=[make_message(1), make_message(2)], backlog_added=[number_at(2), number_at(2), number_at(9)]))
        snapshot = self.reopen(driver)
        assert [place_of(row) for row in snapshot.open_messages] == [1, 2]
        assert snapshot.backlog == [number_at(2)]

    def test_seen_ids_are_the_newest_of_each_sender_oldest_first(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place, sender="Alice" if place % 2 else "Carol") for place in range(1, 11)))
        driver.put(make_message(11, sender="Eve", recipients=(("Bob", 1), ("Dave", 1)), queued=2, skipped=("Zed",)))
        seen = self.reopen(driver, dedup_ids=2).seen_ids
        assert [row.client_id for row in seen] == ["c-7", "c-8", "c-9", "c-10", "c-11"]
        assert seen[-1] == SeenId("Eve", "c-11", number_at(11))

    def test_seen_ids_end_at_the_given_moment(self, driver: StoreDriver) -> None:
        driver.put(*(make_message(place) for place in range(1, 11)))
        assert [row.client_id for row in self.reopen(driver, dedup_since=time_at(8)).seen_ids] == ["c-8", "c-9", "c-10"]
        assert self.reopen(driver, dedup_ids=0).seen_ids == []

    # ---- pruning

    def checkpointed(self, driver: StoreDriver, count: int) -> list[MessageRow]:
        messages = [make_message(place, f"word{place} common") for place in range(1, count + 1)]
        driver.write(Batch(messages=messages, checkpoint=messages[-1].number))
        return messages

    def test_prune_removes_the_oldest_up_to_its_limit(self, driver: StoreDriver) -> None:
        self.checkpointed(driver, 10)
        assert driver.prune(time_at(7), limit=4) == 4
        assert driver.find() == [10, 9, 8, 7, 6, 5]
        assert driver.prune(time_at(7), limit=4) == 2
        assert driver.prune(time_at(7), limit=4) == 0
        assert driver.prune(time_at(7), limit=0) == 0
        assert driver.store.stats().messages == 4

    def test_what_was_pruned_is_not_found_by_word_or_agent(self, driver: StoreDriver) -> None:
        self.checkpointed(driver, 6)
        assert driver.find(search="common") == [6, 5, 4, 3, 2, 1]
        driver.prune(time_at(4))
        assert driver.find(search="common") == [6, 5, 4]
        assert driver.find(search="word1") == []
        assert driver.find(with_agent="bob") == [6, 5, 4]
        assert driver.fetch(number_at(1)) == []

    def test_prune_before_anything_was_searched_leaves_the_rest_searchable(self, driver: StoreDriver) -> None:
        self.checkpointed(driver, 6)
        assert driver.prune(time_at(4)) == 3
        assert driver.find(search="common") == [6, 5, 4]
        assert driver.prune(time_at(99)) == 3
        assert driver.find(search="common") == []
        driver.put(make_message(7, "common"))
        assert driver.find(search="common") == [7]

    def test_prune_keeps_what_may_still_be_delivered(self, driver: StoreDriver) -> None:
        messages = [make_message(place) for place in range(1, 7)]
        driver.write(
            Batch(
                messages=messages,
                backlog_added=[number_at(2)],
                dead_letters=[DeadLetterRow(number_at(3), "Bob", 1, "REJECTED")],
                checkpoint=number_at(5),
            )
        )
        assert driver.prune(time_at(100)) == 3
        assert driver.find() == [6, 3, 2]
        driver.write(
            Batch(backlog_removed=[number_at(2)], dead_letters=[DeadLetterRow(number_at(3), "Bob", 1, "REJECTED", False)])
        )
        assert driver.prune(time_at(100)) == 2
        assert driver.find() == [6]

    def test_prune_takes_old_trails_and_spent_tokens_along(self, driver: StoreDriver) -> None:
        old, new = make_trail(1, 1, time_at(1), "sent"), make_trail(1, 1, time_at(9), "acknowledged")
        tokens = [SpentToken("old", "Bob", time_at(1)), SpentToken("new", "Bob", time_at(9))]
        driver.write(Batch(trail=[old, new], spent_tokens=tokens))
        driver.prune(time_at(5))
        assert driver.trail(make_message(1)) == [new]
        assert self.reopen(driver).spent_tokens == [tokens[1]]

    def test_the_last_number_outlives_its_message(self, driver: StoreDriver) -> None:
        self.checkpointed(driver, 3)
        assert driver.prune(time_at(99)) == 3
        snapshot = self.reopen(driver)
        assert snapshot.last_number == number_at(3)
        assert driver.store.stats().messages == 0

    def test_stats_count_what_is_there_after_a_restart(self, driver: StoreDriver) -> None:
        self.checkpointed(driver, 8)
        driver.prune(time_at(3))
        self.reopen(driver)
        assert driver.store.stats().messages == 6
        driver.put(make_message(20))
        self.reopen(driver)
        stats = driver.store.stats()
        assert stats.messages == 7
        assert stats.size_bytes > 0
        assert stats.kind


def _by_key(rows: list[StreamRow]) -> list[StreamRow]:
    return sorted(rows, key=lambda row: (row.topic, row.sender, row.recipient))
