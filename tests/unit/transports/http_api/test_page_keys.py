"""Codes that work once, and keys of two halves."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from agent_relay.storage.page_keys import PageKeyFile
from agent_relay.transports.http.page_keys import CODE_MS, DAY_MS, UNUSED_MS, PageKeys

NAME = "agent-relay-0123"


class Clock:
    now = 10_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "page-keys.json"


def make(file: Path, clock: Clock) -> PageKeys:
    return PageKeys(PageKeyFile(str(file)), NAME, clock, clock)


def test_a_code_works_once_and_for_a_minute(file: Path, clock: Clock) -> None:
    keys = make(file, clock)
    first, second = keys.new_code(), keys.new_code()
    assert first.code != second.code
    assert first.expires_at == clock.now + CODE_MS
    assert not keys.take_code("")
    assert not keys.take_code(first.code[:-1])
    assert keys.take_code(first.code)
    assert not keys.take_code(first.code)
    clock.now += CODE_MS
    assert not keys.take_code(second.code)


def test_only_so_many_codes_wait(file: Path, clock: Clock) -> None:
    keys = make(file, clock)
    codes = [keys.new_code().code for _ in range(100)]
    assert [keys.take_code(code) for code in codes].count(True) == 32
    assert not keys.take_code(codes[0])


def test_a_key_needs_both_halves_under_its_own_name(file: Path, clock: Clock) -> None:
    keys = make(file, clock)
    key, other = keys.new_key(), keys.new_key()
    assert keys.knows(f"{NAME}={key.cookie}", key.half)
    assert keys.knows(f"a=b; {NAME}=planted; {NAME}={key.cookie};x", key.half)  # another port may set one of our name
    for cookies, half in (
        (f"{NAME}={key.cookie}", ""), (f"{NAME}={key.cookie}", other.half), (f"{NAME}={key.half}", key.cookie),
        (f"agent-relay-9999={key.cookie}", key.half), ("", key.half), (f"{NAME}=", key.half),
        (f"{NAME}={key.cookie}\0{key.half}", ""),
    ):  # fmt: skip
        assert not keys.knows(cookies, half), (cookies, half)


def test_a_key_is_good_over_restarts_and_cannot_be_read_from_disk(file: Path, clock: Clock) -> None:
    key = make(file, clock).new_key()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key.cookie not in file.read_text()
    assert key.half not in file.read_text()
    assert make(file, clock).knows(f"{NAME}={key.cookie}", key.half)


def test_a_key_ends_when_it_was_not_used_for_long(file: Path, clock: Clock) -> None:
    keys = make(file, clock)
    used, unused = keys.new_key(), keys.new_key()
    for _ in range(40):
        clock.now += DAY_MS
        assert keys.knows(f"{NAME}={used.cookie}", used.half)
    assert not keys.knows(f"{NAME}={unused.cookie}", unused.half)
    clock.now += UNUSED_MS - 1
    assert make(file, clock).knows(f"{NAME}={used.cookie}", used.half)


def test_all_are_forgotten_at_once(file: Path, clock: Clock) -> None:
    keys = make(file, clock)
    key, code = keys.new_key(), keys.new_code()
    keys.new_key()
    assert keys.forget() == 2
    assert not keys.knows(f"{NAME}={key.cookie}", key.half)
    assert not keys.take_code(code.code)
    assert not make(file, clock).knows(f"{NAME}={key.cookie}", key.half)


def test_there_is_a_most_of_them(file: Path, clock: Clock) -> None:
    keys = make(file, clock)
    first = keys.new_key()
    clock.now += 1
    for _ in range(64):
        last = keys.new_key()
    assert not keys.knows(f"{NAME}={first.cookie}", first.half)
    assert keys.knows(f"{NAME}={last.cookie}", last.half)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": "b"}', b"\xff"])
def test_a_broken_file_lets_nobody_in_and_does_no_harm(file: Path, clock: Clock, content: bytes) -> None:
    file.write_bytes(content)
    keys = make(file, clock)
    key = keys.new_key()
    assert make(file, clock).knows(f"{NAME}={key.cookie}", key.half)


def test_the_cookie_is_for_no_script_and_no_other_site(file: Path, clock: Clock) -> None:
    keys = make(file, clock)
    key = keys.new_key()
    plain, safe = keys.cookie(key, secure=False), keys.cookie(key, secure=True)
    assert plain.startswith(f"{NAME}={key.cookie}; Path=/; ")
    assert plain.endswith("; HttpOnly; SameSite=Strict")
    assert safe == f"{plain}; Secure"
