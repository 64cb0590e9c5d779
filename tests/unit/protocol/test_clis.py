"""The CLIs that may be started are those that have a profile."""

from __future__ import annotations

from pathlib import Path

import agent_relay
from agent_relay.protocol.clis import KNOWN_CLIS


def test_every_cli_with_a_profile_may_be_started_and_no_other() -> None:
    profiles = Path(agent_relay.__file__).parent / "terminal" / "profiles"
    assert {path.stem for path in profiles.glob("*.toml")} - {"generic"} == KNOWN_CLIS
