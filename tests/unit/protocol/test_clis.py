"""The CLIs that may be started by name: each has a profile, and is known well enough to be started with care."""

from __future__ import annotations

from pathlib import Path

import agent_relay
from agent_relay.protocol.clis import KNOWN_CLIS

# Recognised at their prompt, but nobody has tried yet what their options for permissions and models do.
ONLY_RECOGNISED = {"cline", "continue", "copilot", "kilo", "pi", "qwen", "vibe"}


def test_every_cli_with_a_profile_may_be_started_unless_its_options_are_not_known() -> None:
    profiles = Path(agent_relay.__file__).parent / "terminal" / "profiles"
    assert {path.stem for path in profiles.glob("*.toml")} - {"generic"} - ONLY_RECOGNISED == KNOWN_CLIS
