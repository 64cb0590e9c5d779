"""The part of the conformance suite of stores that asks: finding, searching, replaying, trails, dead letters, conversations."""

from __future__ import annotations

import pytest

from agent_relay.ports.store import (
    Batch,
    DeadLetterRow,
    MessageQuery,
    Page,
)
from tests.contract.store_case import StoreCase
from tests.support.store_driver import (
    StoreDriver,
    make_message,
    make_trail,
    number_at,
    place_of,
    time_at,
)


class StoreReadingContract(StoreCase):
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
            make_message(4, "red sail", topic="sea", kind="action"),
        )
        assert driver.find(with_agent="Alice", sender="Carol") == [3]
        assert driver.find(sender="Carol", recipient="Bob", search="fish") == [3]
        assert driver.find(with_agent="Alice", search="bird") == []
        assert driver.find(topic="sea", thread="t", sender="Carol") == [3]
        assert driver.find(topic="sea", thread="u") == []
        assert driver.find(topic="sea", kind="action") == [4]
        assert driver.find(search="red", kind="message") == [3, 2, 1]
        assert driver.find(kind="Action") == []

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
        assert self.reopen(driver).dead_letters == 3

    def test_dead_letters_are_read_page_by_page_in_the_order_of_their_messages(self, driver: StoreDriver) -> None:
        message, later = make_message(1, recipients=(("Bob", 1), ("carol", 1), ("Dora", 1))), make_message(2)
        places = [(message, "Bob"), (message, "carol"), (message, "Dora"), (later, "Bob")]
        letters = [DeadLetterRow(row.number, name, 40 - at, "REJECTED") for at, (row, name) in enumerate(places)]
        driver.write(Batch(messages=[message, later], dead_letters=letters))
        found, after = [], (0, "")
        while page := driver.dead_letters(2, after):
            found += [letter for letter, _ in page]
            after = (found[-1].number, found[-1].recipient)
        assert found == letters
        assert [letter for letter, _ in driver.dead_letters(after=(message.number, "CAROL"))] == letters[2:]

    def test_a_page_tells_which_of_its_messages_are_dead_letters(self, driver: StoreDriver) -> None:
        messages = [make_message(1, recipients=(("Bob", 1), ("Carol", 1))), make_message(2), make_message(3)]
        letters = [DeadLetterRow(messages[place].number, name, 5, "REJECTED") for place, name in ((0, "Carol"), (2, "Bob"))]
        driver.write(Batch(messages=messages, dead_letters=letters))
        first, third = (messages[0].number, "carol"), (messages[2].number, "bob")
        assert driver.page().dead == {first, third}
        assert driver.page(limit=2).dead == {third}
        assert driver.page(search="hello").dead == {first, third}
        assert driver.ask(driver.store.fetch, [messages[0].number, messages[1].number]).dead == {first}
        assert driver.ask(driver.store.replay, "Bob", {("", "alice"): 0}).dead >= {third}

    def test_a_dead_letter_taken_up_again_is_gone(self, driver: StoreDriver) -> None:
        message = make_message(1, recipients=(("Bob", 1), ("Carol", 1)))
        bob, carol = (DeadLetterRow(message.number, name, 5, "REJECTED") for name in ("Bob", "Carol"))
        driver.write(Batch(messages=[message], dead_letters=[bob, carol]))
        driver.write(Batch(dead_letters=[DeadLetterRow(message.number, "Bob", 6, "REJECTED", active=False)]))
        assert driver.dead_letters() == [(carol, message)]
        assert driver.page().dead == {(message.number, "carol")}
        assert self.reopen(driver).dead_letters == 1
