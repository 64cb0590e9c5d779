from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.ulid import (
    ALPHABET,
    COUNTER_LIMIT,
    EPOCH_MS,
    LARGEST_NUMBER,
    LENGTH,
    RANDOM_BITS,
    decode_bits,
    encode_bits,
    encode_counter,
    encode_number,
    encode_time,
    first_number_at,
    is_ulid,
    number_of,
    time_of_number,
)

times = st.integers(EPOCH_MS, EPOCH_MS + 2**43 - 1)
counters = st.integers(0, COUNTER_LIMIT - 1)
randoms = st.integers(0, 2**RANDOM_BITS - 1)


def make(milliseconds: int, random: int, counter: int) -> str:
    return encode_time(milliseconds) + encode_bits(random, 12) + encode_counter(counter)


def test_the_alphabet_is_crockfords() -> None:
    assert "".join(c for c in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in "ILOU") == ALPHABET
    assert list(ALPHABET) == sorted(ALPHABET)


@given(times, randoms, counters)
def test_the_number_comes_back(milliseconds: int, random: int, counter: int) -> None:
    ulid = make(milliseconds, random, counter)
    assert len(ulid) == LENGTH == 26
    assert is_ulid(ulid)
    number = number_of(ulid)
    assert number == number_of(ulid.lower()) == encode_number(milliseconds, counter)
    assert 0 <= number <= LARGEST_NUMBER
    assert time_of_number(number) == milliseconds
    assert number % COUNTER_LIMIT == counter


@given(times, counters, times, counters, randoms)
def test_ids_sort_as_their_numbers_do(time_a: int, counter_a: int, time_b: int, counter_b: int, random: int) -> None:
    a, b = make(time_a, random, counter_a), make(time_b, random, counter_b)
    assert (a < b) == (number_of(a) < number_of(b)) == ((time_a, counter_a) < (time_b, counter_b))


@given(times, randoms, times, randoms)
def test_an_earlier_time_sorts_first_whatever_the_rest(time_a: int, random_a: int, time_b: int, random_b: int) -> None:
    if time_a < time_b:
        assert make(time_a, random_a, COUNTER_LIMIT - 1) < make(time_b, random_b, 0)


@given(st.integers(1, 26), st.data())
def test_bits(characters: int, data: st.DataObject) -> None:
    value = data.draw(st.integers(0, 32**characters - 1))
    text = encode_bits(value, characters)
    assert len(text) == characters
    assert decode_bits(text) == value


def test_a_known_one() -> None:
    # The time of the ULID specification's own example.
    assert encode_time(1_469_918_176_385) == "01ARYZ6S41"
    assert decode_bits("01ARYZ6S41") == 1_469_918_176_385


@given(times, counters)
def test_a_range_of_time_is_a_range_of_numbers(milliseconds: int, counter: int) -> None:
    assert first_number_at(milliseconds) <= encode_number(milliseconds, counter)
    if milliseconds < EPOCH_MS + 2**43 - 1:
        assert encode_number(milliseconds, counter) < first_number_at(milliseconds + 1)


@given(st.integers(-(2**70), 2**70))
def test_any_time_from_outside_gives_a_number_a_store_can_hold(milliseconds: int) -> None:
    assert 0 <= first_number_at(milliseconds) <= LARGEST_NUMBER == 2**63 - 1


@pytest.mark.parametrize(
    "text", ["", "0" * 25, "0" * 27, "I" * 26, "0" * 25 + "U", "0" * 25 + "-", "ſ" * 26, "0" * 25 + "\n", "ß" * 13]
)
def test_what_is_no_ulid(text: str) -> None:
    assert not is_ulid(text)
    with pytest.raises(ValueError, match="not a ULID"):
        number_of(text)


def test_a_ulid_from_beyond_our_time_has_no_number() -> None:
    assert is_ulid("7" + "Z" * 25)
    with pytest.raises(ValueError, match="not a ULID of ours"):
        number_of("7" + "Z" * 25)
    assert number_of(make(EPOCH_MS + 2**43 - 1, 0, COUNTER_LIMIT - 1)) == LARGEST_NUMBER
