"""Permission modes are arguments out of a fixed list, and those that ask nobody are marked."""

from __future__ import annotations

import pytest

from agent_relay.protocol.clis import KNOWN_CLIS
from agent_relay.protocol.permission_modes import PERMISSION_MODES, modes_of

ALL = [(cli, name, mode) for cli, modes in PERMISSION_MODES.items() for name, mode in modes.items()]
# Words that CLIs use for "do it all, and ask nobody".
NOBODY = ("bypass", "yolo", "danger", "--auto", "yes-always", "approve-for-me")


def test_every_known_cli_has_some_and_no_other() -> None:
    assert PERMISSION_MODES.keys() == KNOWN_CLIS


@pytest.mark.parametrize(("cli", "name", "mode"), ALL, ids=[f"{cli}-{name}" for cli, name, _ in ALL])
def test_a_mode_says_something_and_what_asks_nobody_is_marked(cli: str, name: str, mode: object) -> None:
    found = PERMISSION_MODES[cli][name]
    assert found is mode
    assert bool(found.arguments) != bool(found.environment)
    assert all(word and not word.startswith(" ") for word in found.arguments)
    assert not found.arguments or found.arguments[0].startswith("--")  # else it could be taken for a subcommand
    if any(word in " ".join(found.arguments) for word in NOBODY) or "auto" in found.arguments or name == "auto":
        assert found.asks_nobody


def test_a_path_counts_by_its_last_part() -> None:
    assert modes_of("/opt/bin/claude") == modes_of("claude") != {}
    assert modes_of("claude2") == modes_of("/opt/claude/run") == modes_of("") == {}
