"""Tokens of agents at relays, kept in a file that is its owner's alone.

One entry for each relay and agent. The project's own daemon is one relay, wherever it listens: its port may change with every
start. Written as a whole under a lock, so two programs that register at once both keep theirs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
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
    own: bool = False  # of the project's own daemon


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
            raise ArcError(f"Others can read {self.path}, so its tokens may be known to them. Fix it with: chmod 600 {self.path}")
        return _read_entries(content, self.path)

    def find(self, url: str, agent_id: str | None = None, *, own: bool = False) -> list[KeptToken]:
        return [kept for kept in self.all() if agent_id in {None, kept.agent_id} and _is_of(kept, url, own=own)]

    def keep(self, url: str, agent_id: str, token: str, *, own: bool = False) -> None:
        entry = KeptToken(parse_address(url).http_url, agent_id, token, own)
        with self._locked():
            self._write([*self._others(url, agent_id, own=own), entry])

    def forget(self, url: str, agent_id: str, *, own: bool = False) -> None:
        with self._locked():
            self._write(self._others(url, agent_id, own=own))

    def _others(self, url: str, agent_id: str, *, own: bool) -> list[KeptToken]:
        return [kept for kept in self.all() if kept.agent_id != agent_id or not _is_of(kept, url, own=own)]

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
        said = {"tokens": [asdict(kept) for kept in entries]}
        temporary = f"{self.path}.tmp"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # of a program that was killed; the lock is ours
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _PRIVATE, 0o600), "w", encoding="utf-8") as file:
            json.dump(said, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)


def _is_of(kept: KeptToken, url: str, *, own: bool) -> bool:
    return (own and kept.own) or kept.url == parse_address(url).http_url


def _read_entries(content: str, path: str) -> list[KeptToken]:
    try:
        entries: Any = json.loads(content)["tokens"]
        return [
            KeptToken(str(entry["url"]), str(entry["agent_id"]), str(entry["token"]), entry.get("own") is True)
            for entry in entries
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ArcError(f"{path} is not valid; move it away and register again.") from None
