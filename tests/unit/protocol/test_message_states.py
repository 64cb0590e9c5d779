"""The states of messages."""

from __future__ import annotations

from pathlib import Path

from agent_relay.protocol.message_states import MessageState

GLOSSARY = Path(__file__).parents[3] / "docs" / "glossary.md"


def test_every_state_is_in_the_glossary_in_its_order() -> None:
    section = GLOSSARY.read_text("utf-8").partition("## States of messages")[2].partition("\n## ")[0]
    listed = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
    assert listed == [state.value for state in MessageState]
