"""What is remembered of a client's messages takes little room, whatever it writes."""

from __future__ import annotations

from msgspec import Raw

from agent_relay.transports.arc.incoming import Refs


def test_the_last_ones_are_known() -> None:
    refs = Refs()
    for number in range(100):
        refs.keep(f"m{number}", Raw(b'{"n":[%d]}' % number))
    assert refs.find("m99") == {"n": [99]}
    assert refs.find("m36") == {"n": [36]}
    assert refs.find("m35") is None  # there are 64
    assert refs.find("never there") is None


def test_large_ones_push_out_the_older_but_never_the_newest() -> None:
    refs = Refs()
    for number in range(3):
        refs.keep(f"m{number}", Raw(b'"' + b"x" * 30_000 + b'"'))
    assert [refs.find(f"m{number}") is None for number in range(3)] == [True, False, False]
    refs.keep("huge", Raw(b'"' + b"x" * 90_000 + b'"'))
    assert len(refs.find("huge")) == 90_000
    assert refs.find("m2") is None
    refs.keep("small", Raw(b"1"))
    assert (refs.find("huge"), refs.find("small")) == (None, 1)
