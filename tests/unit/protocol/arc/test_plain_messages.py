"""At a glance or with care: the same is made of a message, and only plain ones are taken at a glance."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_relay.protocol.arc.client_frames import is_command, read_said
from agent_relay.protocol.arc.codes import ArcProblem
from agent_relay.protocol.arc.plain_messages import skim_sends
from agent_relay.protocol.arc.translation import make_send
from tests.unit.protocol.arc.test_client_frames import JSON

TEXT, OTHER = 1, 2

Sends = list[tuple[str, str | list[str], bytes, str]]


def skim(*frames: tuple[int, bytes]) -> tuple[Sends, list[tuple[int, bytes]]]:
    """What was taken, and what was left."""
    sends: Sends = []
    left = iter(frames)
    first = skim_sends(left, TEXT, "arc_x_", count(1), sends)
    return sends, [] if first is None else [first, *left]


def read_with_care(text: bytes) -> Sends:
    try:
        text.decode()
        said = read_said(text)
    except (ArcProblem, UnicodeDecodeError):
        return []
    return [] if is_command(said) else [make_send(said, "arc_x_1")]


def check(text: bytes) -> None:
    sends, left = skim((TEXT, text))
    assert (sends, left) == (read_with_care(text), []) or (sends, left) == ([], [(TEXT, text)])


NAMES = st.sampled_from(["bob-1", "*", "relay", "Bob", "bob_1", "ab", "x" * 65, 'b"', "#news", "", "-bob", "bob-"]) | st.text()
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :"), (",\n", ":\t")])


@given(
    to=st.lists(NAMES, max_size=2) | NAMES, payload=JSON, separators=SEPARATORS, is_ascii=st.booleans(),
    extras=st.dictionaries(st.sampled_from(["type", "ref", "id", "from", "x"]), JSON, max_size=1), turn=st.integers(0, 2),
)  # fmt: skip
def test_what_is_taken_is_what_would_be_read(
    to: Any, payload: Any, separators: tuple[str, str], is_ascii: bool, extras: dict[str, Any], turn: int
) -> None:
    fields = [("to", to), ("payload", payload), *extras.items()]
    said = dict(fields[turn:] + fields[:turn])
    check(json.dumps(said, separators=separators, ensure_ascii=is_ascii).encode(errors="surrogatepass"))


PLAIN = b'{"to":["bob-1"],"payload":"said \\"so\\""}'


@given(
    at=st.integers(0, len(PLAIN)), cut=st.integers(0, 3), put=st.binary(max_size=3) | st.sampled_from([b'"', b"}", b" ", b"\\"])
)
@example(at=26, cut=0, put=b" ")
@example(at=26, cut=0, put=b"  ")
@example(at=26, cut=0, put=b"\t")
@example(at=len(PLAIN) - 1, cut=0, put=b" ")
@example(at=len(PLAIN) - 1, cut=1, put=b"]")
@example(at=len(PLAIN) - 1, cut=0, put=b',"payload":"twice"')
@example(at=len(PLAIN) - 1, cut=0, put=b',"type":"t"')
@example(at=30, cut=0, put=b"\xff")
@example(at=30, cut=0, put=b"\n")
@example(at=30, cut=0, put=b"\\ud800")
def test_nothing_is_taken_for_plain_that_only_looks_like_it(at: int, cut: int, put: bytes) -> None:
    check(PLAIN[:at] + put + PLAIN[at + cut :])


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["as browsers write", "as Python writes"])
@pytest.mark.parametrize("to", ["bob-1", "*"])
@pytest.mark.parametrize("payload", ["", "hello", 'two\nlines "so"', "gr\u00fc\u00dfe \U0001f389"])
def test_plain_ones_are_taken(separators: tuple[str, str], to: str, payload: str) -> None:
    for is_ascii in (True, False):
        text = json.dumps({"to": [to], "payload": payload}, separators=separators, ensure_ascii=is_ascii).encode()
        assert skim((TEXT, text)) == (read_with_care(text), [])


def test_all_in_a_row_are_taken_up_to_the_first_that_needs_care() -> None:
    def say(to: str, payload: Any) -> bytes:
        return json.dumps({"to": [to], "payload": payload}).encode()

    plain = [(TEXT, say(f"bob-{index % 3}", f"number {index}")) for index in range(9)]
    others = [say("bob-0", 5), *(say(name, "x") for name in ("relay", "-bob", "ab", "x" * 65, "**")), b""]
    for last in (*((TEXT, said) for said in others), (OTHER, plain[-1][1]), (OTHER, b"")):
        sends, left = skim(*plain, last, *plain)
        assert left == [last, *plain]
        assert [(id_, to, body) for id_, to, _, body in sends] == [
            (f"arc_x_{index + 1}", f"bob-{index % 3}", f"number {index}") for index in range(9)
        ]
        assert skim(last) == ([], [last])
