"""Following an agent's session from its start to its end, through `/clear`, resume and every new file they bring.

`SessionFollower.poll` does one step and can be called at any time; `follow` calls it whenever the file system says that
something was written, and now and then besides, because a notice can be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path

from watchfiles import awatch

from agent_relay.terminal.output.transcripts.find import find_sessions, holds, reader_for
from agent_relay.terminal.output.transcripts.records import Record
from agent_relay.terminal.output.transcripts.tail import TranscriptTail
from agent_relay.terminal.profiles.profile import Profile

LOOK_AGAIN_MS = 1_000
_DEBOUNCE_MS = 20  # a record is one write; waiting longer only makes a message later
_PARENTS = 8


class SessionFollower:
    def __init__(
        self,
        profile: Profile,
        cwd: str,
        *,
        home: Path,
        since_ms: int,
        session_id: str | None = None,
        is_shared: Callable[[], bool] = bool,
        evidence: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """`since_ms`: when the agent was started; what was said before is history. `is_shared`: another agent of this
        CLI works in the same directory, so that a file is ours only by its session id or by `evidence`, words that
        only this agent was given."""
        self._profile = profile
        self._cwd = cwd
        self._home = home
        self._since_ms = since_ms
        self._session_ids = {session_id} if session_id else set()
        self._is_shared = is_shared
        self._evidence = evidence
        self._reader = reader_for(profile)
        self._tails: dict[Path, TranscriptTail] = {}
        self.path: Path | None = None  # the file that was written to last

    def poll(self) -> list[Record]:
        """Reads what is new in every file of this session, in the order it was written."""
        if self._reader is None:
            return []
        ours = self._find()
        for path in reversed(ours):
            self._tails.setdefault(path, TranscriptTail(path, self._reader.for_file()))
        self.path = ours[0] if ours else self.path
        found = [record for tail in self._tails.values() for record in tail.poll()]
        recent = [record for record in found if not record.at_ms or record.at_ms >= self._since_ms]
        return sorted(recent, key=lambda record: record.at_ms)

    def add_session(self, session_id: str) -> None:
        """The agent goes on in another session, as after `/clear` or a resume."""
        self._session_ids.add(session_id)

    def holds(self, words: str) -> bool:
        """Whether they stand in a file of this session."""
        return any(holds(path, words) for path in self._find())

    def _find(self) -> list[Path]:
        paths = find_sessions(self._profile, self._cwd, home=self._home, since_ms=self._since_ms)
        return [path for path in paths if path in self._tails or self._is_ours(path)]

    def _is_ours(self, path: Path) -> bool:
        if self._session_ids:
            return any(session_id in path.name for session_id in self._session_ids)
        return not self._is_shared() or any(holds(path, words) for words in self._evidence())

    async def follow(self, stop: asyncio.Event) -> AsyncIterator[list[Record]]:
        """Batches of records as they come, until `stop` is set."""
        folder = self._nearest_folder()
        records = self.poll()
        if records:
            yield records
        async for _ in awatch(
            folder, stop_event=stop, debounce=_DEBOUNCE_MS * 5, step=_DEBOUNCE_MS, rust_timeout=LOOK_AGAIN_MS,
            yield_on_timeout=True, ignore_permission_denied=True, watch_filter=None,
        ):  # fmt: skip
            records = self.poll()
            if records:
                yield records
        records = self.poll()
        if records:
            yield records

    def _nearest_folder(self) -> Path:
        """The CLI's folder, or what there is of the way to it: it may be made only when the first session begins."""
        folder = self._home
        for _ in range(_PARENTS):
            if folder.is_dir():
                return folder
            folder = folder.parent
        return folder
