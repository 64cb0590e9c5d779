"""The conformance suite of `ports.store.MessageStore`: what any store must do, as tests that any store can run.

    class TestMyStore(MessageStoreContract):
        def make_store(self, post: Post) -> MessageStore:
            return MyStore(self.folder / "messages.db", post)

`make_store` is called once a test, and again by `reopen` for a store that claims to be `persistent`; a store that is not
is closed and opened again.
"""

from __future__ import annotations

from agent_relay.ports.store import (
    Batch,
    DeadLetterQuery,
    DeadLetterRow,
    MemberRow,
    MessageQuery,
    MessageRow,
    OwedQuery,
    Page,
    Snapshot,
    SpentToken,
    StoreError,
    StreamRow,
    SubscriptionRow,
    TrailRow,
)
from agent_relay.protocol.encode import encode_tail, read_shadows, read_tail
from tests.contract.store_backlog_suite import StoreBacklogContract
from tests.contract.store_reading_suite import StoreReadingContract
from tests.support.store_driver import (
    START_MS,
    StoreDriver,
    make_agent,
    make_message,
    make_stream,
    make_trail,
    make_waiting,
    number_at,
    place_of,
    time_at,
)


class MessageStoreContract(StoreReadingContract, StoreBacklogContract):
    """Subclass it, name the subclass `Test…`, implement `make_store`."""

    # ---- opening

    def test_a_new_store_is_empty(self) -> None:
        driver = StoreDriver(self.make_store)
        assert driver.open() == Snapshot()
        assert driver.page() == Page([])
        assert driver.store.stats().messages == 0
        assert (driver.store.trouble, driver.store.stats().problem, driver.store.stats().lost) == (None, "", "")
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
        assert isinstance(driver.call(store.owed, OwedQuery()), StoreError)
        assert isinstance(driver.call(store.seen, "Bob", 0, 5), StoreError)
        assert isinstance(driver.call(store.dead_letters, DeadLetterQuery()), StoreError)
        assert isinstance(driver.call(store.prune, 0, 5), StoreError)
        assert isinstance(driver.call(store.erase, "Bob", 5), StoreError)

    def test_closing_makes_everything_given_to_write_durable(self, driver: StoreDriver) -> None:
        outcomes: list[StoreError | None] = []
        for place in range(1, 201):
            driver.store.write(Batch(messages=[make_message(place)]), outcomes.append)
        driver.store.close()
        driver.run_ready()
        assert outcomes == [None] * 200
        assert [place_of(row) for row in self.reopen_and_list(driver)] == list(range(1, 201))

    # ---- writing

    def test_a_message_comes_back_as_it_was_written(self, driver: StoreDriver) -> None:
        message = make_message(
            1, "grüße", (("Bob", 4), ("Carol", 9)), topic="code.review", thread="t-1", kind="action", priority=2, queued=1,
            skipped=("Dave", "Eve"), client_id='odd "id" \\ ✓', target="#dev",
        )  # fmt: skip
        driver.put(message)
        assert driver.fetch(message.number) == [message]
        assert driver.page().messages == [message]
        assert self.reopen_and_list(driver) == [message, message]  # for each recipient

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
        assert self.reopen_and_list(driver) == messages
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
        assert self.reopen_and_list(driver) == [first, other]
        assert self.reopen(driver).agents == []

    def test_a_document_is_kept_until_it_is_empty(self, driver: StoreDriver) -> None:
        driver.write(Batch(documents={"budget": b"1", "arc/alice": bytes(range(256)), "odd \0 \1 'name'": b"\0"}))
        driver.write(Batch(documents={"budget": b"22", "new": b"x" * 100_000, "never there": b""}))
        kept = {"budget": b"22", "arc/alice": bytes(range(256)), "odd \0 \1 'name'": b"\0", "new": b"x" * 100_000}
        assert self.reopen(driver).documents == kept
        driver.write(Batch(documents={"budget": b"", "odd \0 \1 'name'": b"", "Budget": b"another name"}))
        assert self.reopen(driver).documents == {
            "arc/alice": bytes(range(256)), "new": b"x" * 100_000, "Budget": b"another name",
        }  # fmt: skip

    def test_a_document_is_written_with_its_batch_or_not_at_all(self, driver: StoreDriver) -> None:
        driver.write(Batch(messages=[make_message(1)], documents={"kept": b"1"}))
        assert isinstance(
            driver.call(driver.store.write, Batch(messages=[make_message(1)], documents={"kept": b"2"})), StoreError
        )
        driver.erase("Alice")
        assert self.reopen(driver).documents == {"kept": b"1"}

    def test_of_several_batches_at_once_the_last_document_counts(self, driver: StoreDriver) -> None:
        outcomes: list[StoreError | None] = []
        for place in range(1, 40):
            driver.store.write(
                Batch(documents={"count": str(place).encode(), "gone": b"" if place == 39 else b"x"}), outcomes.append
            )
        driver.wait_until(lambda: len(outcomes) == 39)
        assert self.reopen(driver).documents == {"count": b"39"}

    def test_an_empty_batch_is_written(self, driver: StoreDriver) -> None:
        driver.write(Batch())

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
                backlog_added=[make_waiting(make_message(1))],
                checkpoint=number_at(1),
            )
        )
        assert driver.owed_places() == [(1, "Bob")]
        driver.write(Batch(forgotten=["bob"]))
        snapshot = self.reopen(driver)
        assert [row.name for row in snapshot.agents] == ["Alice"]
        assert [row.agent for row in snapshot.spent_tokens] == ["Alice"]
        assert [row.agent for row in snapshot.subscriptions] == ["Alice"]
        assert sorted(row.agent for row in snapshot.members) == ["", "Alice"]
        assert snapshot.streams == [make_stream("Alice", "Carol")]
        assert snapshot.waiting == []
        assert driver.owed() == []
        assert driver.find(with_agent="Bob") == [1]

    def test_a_name_may_be_forgotten_and_registered_in_one_batch(self, driver: StoreDriver) -> None:
        driver.write(Batch(agents=[make_agent("Bob")], streams=[make_stream("Alice", "Bob")]))
        driver.write(Batch(forgotten=["Bob"], agents=[make_agent("BOB")]))
        snapshot = self.reopen(driver)
        assert [row.name for row in snapshot.agents] == ["BOB"]
        assert snapshot.streams == []

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
        messages = [make_message(place, recipients=(("Bob", place), ("Carol", place))) for place in range(1, 7)]
        driver.write(
            Batch(
                messages=messages,
                backlog_added=[make_waiting(messages[1], "Carol")],
                dead_letters=[DeadLetterRow(number_at(3), "Bob", 1, "REJECTED")],
                checkpoint=number_at(5),
            )
        )
        assert driver.prune(time_at(100)) == 3
        assert driver.find() == [6, 3, 2]
        driver.write(
            Batch(
                backlog_removed=[("carol", number_at(2))], dead_letters=[DeadLetterRow(number_at(3), "Bob", 1, "REJECTED", False)]
            )
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

    # ---- erasing

    def test_what_an_agent_sent_or_alone_was_sent_is_erased_whatever_is_owed(self, driver: StoreDriver) -> None:
        messages = [
            make_message(1, "common to-bob", (("Bob", 1),), sender="Alice", target="Bob"),
            make_message(2, "common from-bob", (("Alice", 1), ("Carol", 1)), sender="bob", target="*"),
            make_message(3, "common elsewhere", (("Carol", 2),), sender="Alice", target="Carol"),
            make_message(4, "common unsent", (("Carol", 3),), sender="Bob", target="Carol"),
        ]
        letters = [DeadLetterRow(number_at(1), "Bob", 1, "REJECTED"), DeadLetterRow(number_at(3), "Carol", 1, "REJECTED")]
        waiting = [make_waiting(messages[0]), make_waiting(messages[1], "Carol"), make_waiting(messages[2], "Carol")]
        driver.write(Batch(messages=messages, backlog_added=waiting, dead_letters=letters, checkpoint=number_at(3)))
        assert driver.erase("BOB") == 3
        assert driver.find() == [3]
        assert driver.find(search="common") == [3]
        assert driver.find(with_agent="bob") == []
        assert [letter.number for letter, _ in driver.dead_letters()] == [number_at(3)]
        assert driver.owed_places() == [(3, "Carol")]
        assert self.reopen(driver).last_number == number_at(4)
        assert driver.owed_places() == [(3, "Carol")]
        assert driver.store.stats().messages == 1
        assert driver.erase("Bob") == 0

    def test_what_an_agent_got_with_others_stays_theirs_without_it(self, driver: StoreDriver) -> None:
        many = make_message(
            1, "common", (("Carol", 1), ("Bob", 1), ("Dave", 1)), sender="Alice", target="Carol,Bob,Dave", skipped=("Bob", "Eve")
        )
        channel = make_message(2, "common", (("Bob", 2), ("Carol", 2)), sender="Alice", target="#dev")
        letters = [DeadLetterRow(number_at(2), name, 1, "REJECTED") for name in ("Bob", "Carol")]
        waiting = [make_waiting(many), make_waiting(many, "Dave"), make_waiting(channel), make_waiting(channel, "Carol")]
        driver.write(Batch(messages=[many, channel], dead_letters=letters, backlog_added=waiting, checkpoint=number_at(2)))
        assert driver.erase("Bob") == 2
        first, second = driver.fetch(number_at(1), number_at(2))
        assert (first.target, first.recipients, first.skipped) == ("Carol,Dave", (("Carol", 1), ("Dave", 1)), ("Eve",))
        assert (second.target, second.recipients) == ("#dev", (("Carol", 2),))
        assert driver.find(search="common", with_agent="carol") == [2, 1]
        assert driver.find(with_agent="bob") == []
        assert [letter.recipient for letter, _ in driver.dead_letters()] == ["Carol"]
        assert driver.owed_places() == [(1, "Dave"), (2, "Carol")]

    def test_a_shadow_is_erased_from_what_it_got_copies_of_and_keeps_nothing_of_others(self, driver: StoreDriver) -> None:
        def copied(place: int, to: str, recipients: tuple[tuple[str, int], ...], shadows: list[str]) -> MessageRow:
            tail = encode_tail("Alice", "", b'{"body":"common"}', b"", shadows)
            return make_message(place, "common", recipients, sender="Alice", target=to, tail=tail)

        one = copied(1, "Bob", (("Bob", 1), ("Log", 1), ("Audit", 1)), ["Log", "Audit"])
        alone = copied(2, "Bob", (("Bob", 2), ("Log", 2)), ["Log"])
        driver.write(Batch(messages=[one, alone], checkpoint=number_at(2)))
        assert driver.erase("LOG") == 2
        first, second = driver.fetch(number_at(1), number_at(2))
        assert (first.recipients, read_shadows(first.tail)) == ((("Bob", 1), ("Audit", 1)), ("Audit",))
        assert (second.recipients, read_tail(second.tail)) == ((("Bob", 2),), {"from": "Alice", "payload": {"body": "common"}})
        assert driver.erase("Bob") == 2  # the message was Bob's: a copy alone does not keep it
        assert driver.find() == []

    def test_erasing_takes_as_many_at_a_time_as_asked_and_the_trail_at_the_end(self, driver: StoreDriver) -> None:
        messages = [make_message(place, "common", (("Bob", place),), sender="Alice", target="Bob") for place in range(1, 8)]
        messages.append(make_message(8, "common", (("Carol", 1),), sender="Alice", target="Carol"))
        trail = [TrailRow("", "Alice", name, 1, 1, time_at(1), "sent") for name in ("Bob", "Carol")]
        driver.write(Batch(messages=messages, trail=trail))
        assert [driver.erase("Bob", limit=3) for _ in range(3)] == [3, 3, 1]
        assert driver.find() == [8]
        assert driver.trail(messages[0]) == []
        assert driver.trail(messages[7]) == [trail[1]]

    def test_a_name_that_nobody_has_erases_nothing(self, driver: StoreDriver) -> None:
        self.checkpointed(driver, 3)
        assert driver.erase("Nobody") == 0
        assert driver.find() == [3, 2, 1]

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
