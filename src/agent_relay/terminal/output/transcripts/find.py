"""The place where a CLI keeps the session file of an agent: by working directory and by when the agent was started.

Two agents of one CLI may work in one directory, so a file may be another's: `holds` looks for words that only one of
them was given.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from agent_relay.terminal.output.json_fields import decode_object
from agent_relay.terminal.output.transcripts.claude import ClaudeReader
from agent_relay.terminal.output.transcripts.codex import CodexReader
from agent_relay.terminal.output.transcripts.copilot import CopilotReader
from agent_relay.terminal.output.transcripts.gemini import GeminiReader
from agent_relay.terminal.output.transcripts.qwen import QwenReader
from agent_relay.terminal.output.transcripts.records import SessionHead, SessionReader
from agent_relay.terminal.profiles.profile import Profile, Transcript

HEAD_LINES = 20  # the session is named in the first records
_EARLY_MS = 5_000  # clocks of files and records differ a little
_SCANNED_BYTES = 4_194_304

READERS: dict[str, type[SessionReader]] = {
    "claude": ClaudeReader, "codex": CodexReader, "copilot": CopilotReader, "gemini": GeminiReader, "qwen": QwenReader,
}  # fmt: skip


def reader_for(profile: Profile) -> SessionReader | None:
    return READERS[profile.transcript.shape]() if profile.transcript else None


def home_of(transcript: Transcript, environment: Mapping[str, str]) -> Path:
    """The CLI's own folder: where its variable says, else below the person's home."""
    moved = environment.get(transcript.home_variable, "") if transcript.home_variable else ""
    if moved:
        return Path(moved) / transcript.home_below
    return Path(environment.get("HOME") or os.path.expanduser("~")) / transcript.home


def project_names(transcript: Transcript, cwd: str) -> list[str]:
    """Spellings of the directory in a path, as this CLI may use them."""
    spellings = {cwd.rstrip("/") or "/", os.path.realpath(cwd)}
    match transcript.project:
        case "dashes":
            return sorted({re.sub(r"[^A-Za-z0-9]", "-", path) for path in spellings})
        case "name":
            names = {re.sub(r"[^a-z0-9]+", "-", Path(path).name.lower()).strip("-") for path in spellings}
            numbered = {f"{name}-[0-9]*" for name in names}  # of a second folder with that name
            hashes = {hashlib.sha256(path.encode()).hexdigest() for path in spellings}
            return sorted(names | numbered | {Path(path).name for path in spellings} | hashes)
        case _:
            return ["*"]


def find_sessions(
    profile: Profile,
    cwd: str,
    *,
    home: Path,
    since_ms: int = 0,
) -> list[Path]:
    """Files that may be this agent's session, the most recently written first."""
    transcript = profile.transcript
    if transcript is None:
        return []
    found: list[tuple[float, Path]] = []
    for name in project_names(transcript, cwd):
        for path in home.glob(transcript.path.replace("{project}", name)):
            written = _written_ms(path)
            if written is not None and written >= since_ms - _EARLY_MS and _is_of(profile, path, cwd):
                found.append((written, path))
    return [path for _, path in sorted(found, key=lambda entry: (entry[0], entry[1].name), reverse=True)]


def holds(path: Path, words: str) -> bool:
    """Whether these words, such as the id of a message that was handed in, stand in the file's last part."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _SCANNED_BYTES, 0))
            return words.encode() in file.read()
    except OSError:
        return False


def read_head(profile: Profile, path: Path) -> SessionHead | None:
    reader = reader_for(profile)
    if reader is None:
        return None
    try:
        with path.open("rb") as file:
            for _ in range(HEAD_LINES):
                record = decode_object(file.readline(_SCANNED_BYTES)) or {}
                head = reader.head(record)
                if head is not None:
                    return head
    except OSError:
        return None
    return None


def _is_of(profile: Profile, path: Path, cwd: str) -> bool:
    """A file that names another directory is another's; one that names none is believed by its place."""
    head = read_head(profile, path)
    if head is None or not head.cwd:
        return profile.transcript is not None and bool(profile.transcript.project)
    return os.path.realpath(head.cwd) == os.path.realpath(cwd)


def _written_ms(path: Path) -> float | None:
    try:
        return path.stat().st_mtime * 1000
    except OSError:
        return None
