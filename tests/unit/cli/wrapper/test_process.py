"""A program's description, as far as it is known before it runs."""

from __future__ import annotations

import pytest

from agent_relay.cli.wrapper.process import find_model


@pytest.mark.parametrize(
    ("cli", "argv", "environ", "model"),
    [
        ("claude", ["claude", "--model", "opus"], {}, "opus"),
        ("codex", ["codex", "-a", "never", "-m", "gpt"], {}, "gpt"),
        ("gemini", ["gemini", "--model=flash"], {"GEMINI_MODEL": "pro"}, "flash"),
        ("gemini", ["gemini"], {"GEMINI_MODEL": "pro"}, "pro"),
        ("claude", ["claude"], {"ANTHROPIC_MODEL": "opus"}, "opus"),
        ("claude", ["claude"], {"GEMINI_MODEL": "pro"}, ""),
        ("codex", ["codex", "-m"], {"": "strange"}, ""),
        ("claude", ["claude", "--model", "--print"], {}, ""),
    ],
)
def test_a_model_that_is_asked_for(cli: str, argv: list[str], environ: dict[str, str], model: str) -> None:
    assert find_model(cli, argv, environ) == model
