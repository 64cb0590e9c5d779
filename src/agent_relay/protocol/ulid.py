"""ULIDs: 26 characters that sort by the time they were made, and the row number that hides in each of ours.

Ours are laid out as 10 characters of milliseconds, 12 of randomness drawn once per process, 4 of a counter.
Time and counter together are the `number` of a message: one 63-bit integer that grows with every message and is
its primary key in the store, so an id is found without an index and a time range is a range of numbers.
"""

from __future__ import annotations

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 26
COUNTER_BITS = 20
COUNTER_LIMIT = 1 << COUNTER_BITS
RANDOM_BITS = 60
EPOCH_MS = 1_577_836_800_000  # 2020-01-01: 43 bits of milliseconds from here last until the year 2298
LARGEST_NUMBER = (1 << 63) - 1  # what a store's integer holds

PAIRS = tuple(a + b for a in ALPHABET for b in ALPHABET)  # ten bits of a counter as two characters
_VALUES = {character: value for value, character in enumerate(ALPHABET)}


def encode_time(milliseconds: int) -> str:
    return encode_bits(milliseconds, 10)


def encode_bits(value: int, characters: int) -> str:
    return "".join(ALPHABET[(value >> (5 * place)) & 31] for place in range(characters - 1, -1, -1))


def encode_counter(counter: int) -> str:
    return PAIRS[counter >> 10] + PAIRS[counter & 1023]


def decode_bits(text: str) -> int:
    value = 0
    for character in text:
        value = value << 5 | _VALUES[character]
    return value


def is_ulid(text: str) -> bool:
    return len(text) == LENGTH and text.isascii() and all(character in _VALUES for character in text.upper())


def number_of(ulid: str) -> int:
    """The message number in one of our ULIDs; raises ValueError for a text that is none."""
    if not is_ulid(ulid):
        raise ValueError(f"not a ULID: {ulid!r}")
    text = ulid.upper()
    number = encode_number(decode_bits(text[:10]), decode_bits(text[22:]))
    if number > LARGEST_NUMBER:
        raise ValueError(f"not a ULID of ours, it is from beyond the year 2298: {ulid!r}")
    return number


def encode_number(milliseconds: int, counter: int) -> int:
    return max(milliseconds - EPOCH_MS, 0) << COUNTER_BITS | counter


def first_number_at(milliseconds: int) -> int:
    """The smallest number a message of that moment can have: where a range of time begins."""
    return min(encode_number(milliseconds, 0), LARGEST_NUMBER)  # a time from outside may be any number


def time_of_number(number: int) -> int:
    return (number >> COUNTER_BITS) + EPOCH_MS
