"""Where a browser would be seen."""

from __future__ import annotations

import sys

import pytest

from agent_relay.cli.commands.open import has_display


@pytest.mark.parametrize(
    ("environ", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "darwin", True),
    ],
)
def test_a_browser_needs_a_screen(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], platform: str, expected: bool
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "platform", platform)
    assert has_display(environ) is expected
