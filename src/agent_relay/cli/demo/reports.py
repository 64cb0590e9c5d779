"""The records of the agents' screens, read as they are written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agent_relay.cli.demo.game import Saying, read_line

_MESSAGE = re.compile(r"Relay message from (\S+) \[(\w+)\][^:]*: (.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Report:
    t: float  # seconds of the steady clock
    name: str  # whose screen
    event: str  # as the scripted agent names them
    text: str = ""
    mode: str = ""
    columns: int = 0

    @property
    def message(self) -> tuple[str, str, str] | None:
        """Sender, mark and text, where it is a message of the relay."""
        match = _MESSAGE.fullmatch(self.text)
        return (match[1], match[2], match[3]) if match else None

    @property
    def saying(self) -> Saying | None:
        return read_line(self.name, self.text) if self.event == "said" else None


class Reports:
    """All that was reported so far, in order of time as far as each reading shows it."""

    def __init__(self, records: dict[str, Path]) -> None:
        self._records = records
        self._files: dict[str, BinaryIO] = {}
        self._rest = dict.fromkeys(records, b"")
        self.all: list[Report] = []

    def read(self) -> list[Report]:
        """Those that are new."""
        fresh: list[Report] = []
        for name, path in self._records.items():
            if name not in self._files and path.exists():
                self._files[name] = path.open("rb")
            if name in self._files:
                *lines, self._rest[name] = (self._rest[name] + self._files[name].read()).split(b"\n")
                fresh += [_read(name, line) for line in lines]
        fresh.sort(key=lambda report: report.t)
        self.all += fresh
        return fresh

    def of(self, event: str, name: str | None = None) -> list[Report]:
        return [report for report in self.all if report.event == event and name in {None, report.name}]

    def printed(self, sender: str) -> list[Saying]:
        return [report.saying for report in self.of("said", sender) if report.saying is not None]

    def printed_messages(self) -> list[Report]:
        return [report for report in self.of("said") if report.saying is not None]

    def keys(self) -> str:
        """Everything that was typed into a dialog."""
        return "".join(report.text for report in self.of("input") if report.mode == "dialog")

    def latency_s(self, taken: Report) -> float | None:
        """From the moment its sender's screen showed the line to the moment the recipient's screen showed the message."""
        assert taken.message is not None
        sender, _, text = taken.message
        printed = [report.t for report in self.of("said", sender) if report.saying and report.saying.text == text]
        shown = [report.t for report in self.of("shown", taken.name) if report.text == taken.text]
        return max(0.0, shown[0] - printed[0]) if printed and shown else None

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _read(name: str, line: bytes) -> Report:
    told = json.loads(line)
    return Report(told["t"], name, told["event"], told.get("text", ""), told.get("mode", ""), told.get("columns", 0))
