"""Values that a record of a session file can tell. Times are milliseconds since 1970; 0 where the record has none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from agent_relay.terminal.output.transcripts.file_changes import FileChange


class Saying(Struct, frozen=True):
    """Text of the agent, as it was written."""

    id: str
    text: str
    at_ms: int
    model: str | None = None
    started_ms: int = 0


class Thinking(Struct, frozen=True):
    """Thoughts of the agent, as far as the CLI writes them down: the text may be a summary, or empty."""

    id: str
    text: str
    at_ms: int
    started_ms: int = 0


class Taking(Struct, frozen=True):
    """A message the agent was given: typed, injected, or put in through a door of the CLI's own."""

    id: str
    text: str
    at_ms: int
    message_id: str | None = None  # the id its sender gave it, where the CLI keeps it


class ToolCall(Struct, frozen=True):
    id: str
    name: str
    arguments: dict[str, Any]
    at_ms: int


class ToolResult(Struct, frozen=True):
    id: str
    at_ms: int
    is_error: bool = False
    was_run: bool = True  # False: the person, or a rule, refused it
    output: str = ""
    exit_code: int | None = None  # of a command; None: the record does not say
    stdout: str | None = None  # where the record has it apart from the output
    stderr: str = ""
    duration_ms: int | None = None  # where the record says it; else the times of call and result do
    changes: tuple[FileChange, ...] | None = None  # None: the record does not show what it did to files


class Spending(Struct, frozen=True):
    """Tokens of one answer, as the CLI counts them."""

    id: str
    model: str | None
    at_ms: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


Record: TypeAlias = Saying | Thinking | Taking | ToolCall | ToolResult | Spending


class SessionHead(Struct, frozen=True):
    """The session that a file is of."""

    session_id: str = ""
    cwd: str = ""
    started_ms: int = 0


class Seen:
    """Ids that were met before, the latest of them."""

    def __init__(self, limit: int = 200_000) -> None:
        self._ids: dict[str, None] = {}
        self._limit = limit

    def is_new(self, id_: str) -> bool:
        if id_ in self._ids:
            return False
        self._ids[id_] = None
        if len(self._ids) > self._limit:
            del self._ids[next(iter(self._ids))]
        return True


class RecordReader(Protocol):
    """Reads the lines of session files."""

    def read(self, record: dict[str, Any]) -> list[Record]: ...

    def head(self, record: dict[str, Any]) -> SessionHead | None:
        """Of the first records of a file; None for one that does not say."""
        ...


class SessionReader(ABC):
    """Reads those of one CLI. It remembers the ids it has seen: a record that is written again, in this file or in the next one
    of a resumed session, tells nothing new."""

    def __init__(self, seen: Seen | None = None) -> None:
        self._seen = Seen() if seen is None else seen

    @abstractmethod
    def read(self, record: dict[str, Any]) -> list[Record]: ...

    @abstractmethod
    def head(self, record: dict[str, Any]) -> SessionHead | None: ...

    def for_file(self) -> RecordReader:
        """One for a file of its own, that remembers the same ids."""
        return self
