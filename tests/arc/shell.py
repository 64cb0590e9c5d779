"""Commands run in this process, with what they print."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.cli.main import main


class Shell:
    """`place` are the words that say where the relay and the files are; they follow those of every command."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *place: str) -> None:
        self._capsys = capsys
        self._place = place

    def words(self, *words: str) -> list[str]:
        return [*words, *self._place]

    def __call__(self, *words: str, status: int = 0) -> str:
        """What it said: on standard output, and where it was to fail, on both."""
        ended = main(self.words(*words))
        said = self._capsys.readouterr()
        assert ended == status, f"{words}: {ended}\n{said.out}\n{said.err}"
        return said.out if status == 0 else said.out + said.err

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))
