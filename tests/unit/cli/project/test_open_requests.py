"""Which request an id means, and how requests look."""

from __future__ import annotations

import io
from typing import Any

import pytest

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.formats import now_ms
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project.open_requests import pick, show
from agent_relay.protocol.requests import OpenRequest, decode_open


def request(agent: str, id_: str, **more: Any) -> OpenRequest:
    """As the daemon lists it."""
    return decode_open({"kind": "permission", "agent": agent, "id": id_, "at": now_ms() - 5_000, "options": [], **more})


OPEN = [request("Bob", "screen-1234"), request("Bob", "screen-1299"), request("Carol", "screen-1234"), request("Carol", "x")]


@pytest.mark.parametrize(
    ("wanted", "found"), [("x", ("Carol", "x")), ("screen-129", ("Bob", "screen-1299")), ("screen-1299", ("Bob", "screen-1299"))]
)
def test_an_id_or_its_beginning_is_enough(wanted: str, found: tuple[str, str]) -> None:
    picked = pick(OPEN, wanted, "permission")
    assert (picked.agent, picked.request.id) == found


def test_a_whole_id_is_no_beginning_of_another() -> None:
    assert pick([request("Bob", "a"), request("Carol", "ab")], "a", "permission").agent == "Bob"


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("screen-1234", "Bob, Carol each have a permission screen-1234; choose one with --agent."),
        ("nothing", "There is no open permission nothing; `agent-relay permissions` lists them."),
        ("", "There is no open permission ; `agent-relay permissions` lists them."),
    ],
)
def test_what_is_not_clear_is_asked_back(wanted: str, sentence: str) -> None:
    with pytest.raises(Failure) as failure:
        pick(OPEN, wanted, "permission")
    assert failure.value.sentence == sentence


def test_two_of_one_agent_are_named() -> None:
    with pytest.raises(Failure, match=r"Ambiguous id; type more characters\. Bob has 2 permissions: screen-1234, screen-1299"):
        pick(OPEN[:2], "screen", "permission")


def shown(*requests: OpenRequest) -> str:
    stream = io.StringIO()
    show(Screen(stream), requests)
    return stream.getvalue()


def test_everything_that_matters_is_shown() -> None:
    text = shown(
        request(
            "Bob", "0123456789", tool="Bash", risk="high", command="make\nmake install", description="Run it?",
            options=["Yes", "No"], can_allow=False, shortened=True,
        )
    )  # fmt: skip
    assert text.splitlines() == [
        "01234567  Bob  Bash  high risk  5 s ago  can only be denied here",
        "    make",
        "    make install",
        "    Run it?",
        "    options: Yes | No",
        "    (shortened; its terminal shows the rest)",
        "    deny: agent-relay permissions deny 01234567",
    ]


def test_ids_are_long_enough_to_tell_them_apart() -> None:
    lines = shown(*OPEN[:2]).splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == ["screen-123", "screen-129"]
    assert "    approve: agent-relay permissions approve screen-129   deny: agent-relay permissions deny screen-129" in lines


def test_the_commands_that_are_shown_can_be_pasted_whatever_the_id_is() -> None:
    assert "permissions approve '$(date);'   deny: " in shown(request("Bob", "$(date);x", command="make"))


def test_nothing_an_agent_asks_steers_the_terminal() -> None:
    text = shown(request("Bob", "\x1b[2J", command="ls\x1b[31m", description="\u202eevil", options=["\x07"]))
    assert not any(ord(character) < 32 for character in text.replace("\n", ""))
    assert "ls⟨U+001B⟩[31m" in text
    assert "⟨U+202E⟩evil" in text
    assert "⟨U+0007⟩" in text


def test_what_lies_is_shown_where_a_person_decides() -> None:
    text = shown(request("Bob", "1", command="rm\u200b -rf /p\u0430th", description="\U000e0041 harmless", options=["Y\u0435s"]))
    assert "rm⟨U+200B⟩ -rf /p⟨U+0430⟩th" in text
    assert "⟨U+E0041⟩ harmless" in text
    assert "Y⟨U+0435⟩s" in text
