"""The person at the command line."""

from __future__ import annotations

import pytest

from agent_relay.cli import person


@pytest.fixture(autouse=True)
def anna(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person, "person", lambda: "Anna")


@pytest.mark.parametrize("name", ["Anna", "anna", "anna-2", "Anna-9", "cli-anna", "http"])
def test_you_are_you_by_every_name_you_send_under(name: str) -> None:
    assert person.show_name(name) == "you"


@pytest.mark.parametrize("name", ["Bob", "anna-10", "anna-x", "cli-bob", "annas", ""])
def test_nobody_else_is(name: str) -> None:
    assert person.show_name(name) == name
