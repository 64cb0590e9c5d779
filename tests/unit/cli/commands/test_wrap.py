"""What was asked of `wrap` reaches the wrapper that runs in the background, all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_relay.cli.commands import wrap
from agent_relay.cli.main import main
from agent_relay.cli.wrapper.process import WrapOptions
from agent_relay.sdk.locate import Place, locate
from agent_relay.terminal.agent.launch import pick_backend

PLAIN = WrapOptions(["cat", "-u"], "Bob", pick_backend("pty"), "->relay:", True)


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        replace(PLAIN, name=None),
        replace(PLAIN, argv=["cat", "--name", "--", "a b", "$(x)"]),
        replace(PLAIN, prefix="->team:", has_introduction=False),
        replace(PLAIN, cli="codex", record="/tmp/a b.cast"),
        replace(PLAIN, doors="off"),
        replace(PLAIN, doors="known"),
        replace(PLAIN, asks_for_hooks=True),
        replace(PLAIN, has_status=True),
        replace(PLAIN, session="s-1", end_file="/tmp/end"),
    ],
)
def test_a_wish_survives_being_spelled_out(options: WrapOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = locate(socket=tmp_path / "relay.sock", state_dir=tmp_path / "state")
    heard: list[tuple[Place, WrapOptions, int]] = []

    def be_wrapper(place: Place, options: WrapOptions, ready: int) -> int:
        heard.append((place, options, ready))
        return 0

    monkeypatch.setattr(wrap, "_be_wrapper", be_wrapper)
    assert main(["wrap", "--ready-descriptor=7", *wrap.spell_out(place, options)[1:]]) == 0
    assert heard == [(place, options, 7)]
