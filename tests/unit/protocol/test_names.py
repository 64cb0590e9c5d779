from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import (
    MAX_TOPIC_LENGTH,
    RESERVED,
    check_agent_name,
    check_channel,
    did_you_mean,
    fold_name,
    is_channel,
    is_name,
    is_pattern,
    is_reserved,
    is_topic,
    pattern_matches,
    person_name,
    show,
    spare_names,
)

from .strategies import names

GOOD_NAMES = ["A", "a", "0", "Bob", "my-agent", "a.b_c-d", "9lives", "x" * 64, "agent-007", "A-", "a."]
BAD_NAMES = ["", "-a", ".a", "_a", "a b", "a/b", "x" * 65, "Bob\n", "\nBob", "é", "Ａ", "٣", "a\x00", "*", "#dev", "a,b", " Bob"]


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_good_names(name: str) -> None:
    assert is_name(name)
    check_agent_name(name)
    assert is_channel("#" + name)
    check_channel("#" + name)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_names(name: str) -> None:
    assert not is_name(name)
    assert not is_channel("#" + name)
    with pytest.raises(RelayError) as caught:
        check_agent_name(name)
    assert caught.value.code is ErrorCode.INVALID_TARGET
    assert "\n" not in caught.value.message
    with pytest.raises(RelayError):
        check_channel("#" + name)


@given(st.text(max_size=70))
def test_the_rule_of_the_contract(text: str) -> None:
    assert is_name(text) == (re.search(r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z", text) is not None)


@pytest.mark.parametrize("name", ["relay", "daemon", "system", "all", "everyone", "spawn", "release", "human"])
@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_reserved_in_any_case(name: str, spell: type[str]) -> None:
    with pytest.raises(RelayError) as caught:
        check_agent_name(spell(name))
    assert caught.value.code is ErrorCode.INVALID_TARGET
    assert len(RESERVED) == 8


@given(names)
def test_names_are_compared_without_case(name: str) -> None:
    assert fold_name(name.upper()) == fold_name(name.lower()) == fold_name(name)


@pytest.mark.parametrize("text", ["", "dev", "#", "##dev", "#-a"])
def test_what_is_no_channel(text: str) -> None:
    assert not is_channel(text)


@pytest.mark.parametrize("topic", ["a", "a.b", "a*b", "build>done", "δ.ω", "x" * MAX_TOPIC_LENGTH, 'quote".back\\slash'])
def test_good_topics(topic: str) -> None:
    assert is_topic(topic)
    assert is_pattern(topic)


@pytest.mark.parametrize("topic", ["", ".", "a.", ".a", "a..b", "a b", "a\n", "a\x00", "x" * (MAX_TOPIC_LENGTH + 1)])
def test_bad_topics(topic: str) -> None:
    assert not is_topic(topic)
    assert not is_pattern(topic)


@pytest.mark.parametrize(
    ("pattern", "good"), [("*", 1), (">", 1), ("a.*.c", 1), ("a.>", 1), (">.a", 0), ("a.>.b", 0), ("*.>", 1)]
)
def test_wildcards_are_for_subscribing_only(pattern: str, good: int) -> None:
    assert is_pattern(pattern) is bool(good)
    assert not is_topic(pattern)


def reference_matches(pattern: str, topic: str) -> bool:
    """Written from the sentence of the contract alone: `*` is one token, a last `>` is one or more."""
    expression = re.escape(pattern).replace(r"\*", r"[^.]+").replace(">", r"[^.]+(?:\.[^.]+)*")
    return re.fullmatch(expression, topic) is not None


def words(tokens: str, longest: int) -> list[str]:
    return [".".join(word) for length in range(1, longest + 1) for word in product(tokens, repeat=length)]


def test_matching_against_a_reference_exhaustively() -> None:
    patterns = [pattern for pattern in words("ab*>", 4) if is_pattern(pattern)]
    topics = words("abc", 5)
    assert len(patterns) > 100
    wrong = [(p, t) for p in patterns for t in topics if pattern_matches(p, t) != reference_matches(p, t)]
    assert wrong == []


@given(st.lists(st.text("ab-_é", min_size=1, max_size=3), min_size=1, max_size=5).map(".".join))
def test_a_topic_matches_itself_and_everything(topic: str) -> None:
    assert pattern_matches(topic, topic)
    assert pattern_matches(">", topic)
    assert pattern_matches(".".join("*" for _ in topic.split(".")), topic)
    assert not pattern_matches(topic + ".x", topic)


def test_did_you_mean() -> None:
    known = ["Alice", "Bob", "Bobby", "Carol", "BOBO"]
    assert did_you_mean("bpb", known) == ["Bob"]
    assert did_you_mean("ALICE1", known) == ["Alice"]
    assert len(did_you_mean("bob", known)) == 3
    assert did_you_mean("zzz", known) == []
    assert did_you_mean("x", []) == []


@given(st.text(max_size=200), st.integers(5, 100))
def test_what_is_shown_is_short_and_harmless(text: str, limit: int) -> None:
    shown = show(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("login", "name"),
    [
        ("anna", "anna"), ("Anna Ó Brien", "Anna-Brien"), ("DOMAIN\\user", "DOMAIN-user"), ("-", "user"), ("ж" * 80, "user"),
        ("x" * 200, "x" * 50), ("daemon", "user-daemon"), ("http", "user-http"), ("cli-x", "user-cli-x"), ("_apt", "user-_apt"),
    ],
)  # fmt: skip
def test_every_login_gives_a_name_that_an_agent_may_have(login: str, name: str) -> None:
    assert person_name(login) == name
    for each in spare_names(person_name(login)):
        check_agent_name(each)
        assert not is_reserved(each)
