"""Tokens of agents at relays, kept in a file that is its owner's alone.

One entry for each relay and agent. Written as a whole under a lock, so two programs that register at once both keep theirs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_relay.arc.addresses import parse_address
from agent_relay.arc.errors import ArcError

TOKENS_FILE = "arc-tokens.json"
_PRIVATE = os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class KeptToken:
    url: str  # the relay's, as `ArcAddress.http_url` writes it
    agent_id: str
    token: str = field(repr=False)


class TokenFile:
    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, TOKENS_FILE)
        self._directory = directory

    def all(self) -> list[KeptToken]:
        """Raises ArcError for a file that others can read, or that cannot be understood."""
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | _PRIVATE), encoding="utf-8") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read()
        except FileNotFoundError:
            return []
        if stat.S_IMODE(mode) & 0o077:
            raise ArcError(f"Others can read {self.path}, so its tokens may be known; mend it with: chmod 600 {self.path}")
        return _read_entries(content, self.path)

    def find(self, url: str, agent_id: str | None = None) -> list[KeptToken]:
        relay = parse_address(url).http_url
        return [kept for kept in self.all() if kept.url == relay and agent_id in {None, kept.agent_id}]

    def keep(self, url: str, agent_id: str, token: str) -> None:
        relay = parse_address(url).http_url
        with self._locked():
            others = [kept for kept in self.all() if (kept.url, kept.agent_id) != (relay, agent_id)]
            self._write([*others, KeptToken(relay, agent_id, token)])

    def forget(self, url: str, agent_id: str) -> None:
        relay = parse_address(url).http_url
        with self._locked():
            self._write([kept for kept in self.all() if (kept.url, kept.agent_id) != (relay, agent_id)])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        descriptor = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | _PRIVATE, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, entries: list[KeptToken]) -> None:
        said = {"tokens": [{"url": kept.url, "agent_id": kept.agent_id, "token": kept.token} for kept in entries]}
        temporary = f"{self.path}.tmp"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # of a program that was killed; the lock is ours
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _PRIVATE, 0o600), "w", encoding="utf-8") as file:
            json.dump(said, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)


def _read_entries(content: str, path: str) -> list[KeptToken]:
    try:
        entries: Any = json.loads(content)["tokens"]
        return [KeptToken(str(entry["url"]), str(entry["agent_id"]), str(entry["token"])) for entry in entries]
    except (ValueError, KeyError, TypeError):
        raise ArcError(f"{path} cannot be understood; move it away and register again.") from None
