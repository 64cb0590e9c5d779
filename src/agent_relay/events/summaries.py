"""The sum of a session, counted event by event as its agent's record tells them."""

from __future__ import annotations

from msgspec.structs import replace

from agent_relay.events.costs import CostBook, RecentIds, read_usage
from agent_relay.events.prices import Prices
from agent_relay.events.types import CommandExecuted, Event, FileOperation, ItemStarted, SessionSummary, TokensUsed

COUNTED = ("item.started", "file.operation", "command.executed", "tokens.used")
_MOST_FILES = 100_000  # paths that are remembered; a session that changes more has changed at least so many


class SessionCount:
    def __init__(self, prices: Prices) -> None:
        self.items = 0
        self.commands = 0
        self.files: set[str] = set()
        self._touches = 0  # of files, reads too
        self._usages = 0
        self._book = CostBook(prices, seen=RecentIds())

    def add(self, event: Event) -> None:
        match event:
            case ItemStarted():
                self.items += 1
            case CommandExecuted():
                self.commands += 1
            case FileOperation(operation=operation, file_path=path):
                self._touches += 1
                if operation != "read" and len(self.files) < _MOST_FILES:
                    self.files.add(path)
            case TokensUsed():
                self._usages += 1
                # One that was not written yet has no number to be known by.
                self._book.add(read_usage(event if event.seq else replace(event, seq=-self._usages)))
            case _:
                pass

    @property
    def total_tokens(self) -> int:
        return self._book.report().total.total_tokens

    @property
    def estimated_cost_usd(self) -> float | None:
        return self._book.report().total.estimated_cost_usd

    def finish(self, duration_ms: int) -> SessionSummary:
        """Items come only from a record that has everything else, too: with one, none means none. Without one, a kind that was
        never told of may have happened all the same, and is left out."""
        has_record = self.items > 0
        return SessionSummary(
            duration=max(0, duration_ms),
            item_count=self.items or None,
            files_modified=len(self.files) if has_record or self._touches else None,
            commands_run=self.commands if has_record or self.commands else None,
            total_tokens=self.total_tokens if self._usages else None,
            estimated_cost=self.estimated_cost_usd if self._usages else None,
        )
