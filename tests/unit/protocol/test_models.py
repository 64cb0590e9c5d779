"""Models: each CLI is told in its own way, and nothing that looks like an option is ever one."""

from __future__ import annotations

import pytest

from agent_relay.protocol.clis import KNOWN_CLIS
from agent_relay.protocol.models import choose_model, is_model, takes_model


@pytest.mark.parametrize("cli", sorted(KNOWN_CLIS))
def test_every_known_cli_takes_a_model(cli: str) -> None:
    assert takes_model(cli)
    chosen = choose_model(cli, "m-1")
    assert (chosen.arguments, chosen.environment) in [(("--model", "m-1"), {}), ((), {"GOOSE_MODEL": "m-1"})]
    assert choose_model(cli, None).arguments == ()


def test_an_unknown_program_takes_none() -> None:
    assert not takes_model("chatty")


@pytest.mark.parametrize(("text", "is_one"), [
    ("opus", True), ("openai/gpt-5.1", True), ("claude-opus-4[1m]", True), ("anthropic:x@2026", True),
    ("--evil", False), ("-m", False),
    ("a b", False), ("", False), ("x" * 129, False), ("a;b", False), ("a\n", False),
])  # fmt: skip
def test_names_of_models(text: str, is_one: bool) -> None:
    assert is_model(text) is is_one
