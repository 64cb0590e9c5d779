"""Recordings and session files through the code that watches a live agent: what would it have done?

`replay` yields the lines that `agent-relay replay --json` prints, as dictionaries. Times are seconds: of the recording,
or since the first record of a session file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_relay.terminal.output.commands import (
    FileCommand,
    JoinCommand,
    LeaveCommand,
    ReleaseCommand,
    ResultCommand,
    SendCommand,
    SpawnCommand,
    VoteCommand,
)
from agent_relay.terminal.output.json_fields import decode_object
from agent_relay.terminal.output.observations import (
    CommandRun,
    FileTouched,
    MessageTaken,
    Observation,
    PermissionAsked,
    QuestionAsked,
    SpeechPart,
    TokensUsed,
    ToolEnded,
    ToolStarted,
    Uttered,
)
from agent_relay.terminal.output.transcripts.find import READERS, reader_for
from agent_relay.terminal.output.transcripts.tail import TranscriptTail
from agent_relay.terminal.output.watcher import (
    SCREEN,
    TRANSCRIPT,
    CommandSeen,
    CommandUnfinished,
    Event,
    Noticed,
    StateChanged,
    Watcher,
)
from agent_relay.terminal.profiles.profile import GENERIC, Profile, load_profiles, profile_for
from agent_relay.terminal.recordings.asciicast import Cast, CastError, read_cast

FINAL_PAUSE_S = 5.0  # after the end of a recording: what waits for a pause gets one
_BANNERS = (
    ("claude", "Claude Code"), ("codex", "OpenAI Codex"), ("gemini", "Gemini CLI"), ("aider", "Aider v"),
    ("opencode", "OpenCode"), ("goose", "goose is running"),
)  # fmt: skip


class ReplayError(Exception):
    """The file cannot be replayed; the text says why."""


def replay(
    path: str | Path, cli: str | None = None, source: str | None = None, chunk: int | None = None,
    profiles: Mapping[str, Profile] | None = None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """`chunk`: bytes fed at a time; the outcome does not depend on it. `profiles`: where there are more than ours."""
    path = Path(path)
    if not path.is_file():
        raise ReplayError(f"There is no file {path}.")
    if source not in {None, SCREEN, TRANSCRIPT}:
        raise ReplayError(f"The source must be `screen` or `transcript`, not {source!r}.")
    if chunk is not None and chunk < 1:
        raise ReplayError("A chunk must have at least one byte.")
    is_session = _is_session(path)
    if (source == SCREEN and is_session) or (source == TRANSCRIPT and not is_session):
        raise ReplayError(f"{path.name} is a {'session file' if is_session else 'recording'}: it has no {source}.")
    events = _replay_session(path, cli) if is_session else _replay_cast(path, cli, chunk, profiles or load_profiles())
    for event in events:
        yield line_of(event)


# --- recordings ----------------------------------------------------------------------------------------------------


def _replay_cast(path: Path, cli: str | None, chunk: int | None, profiles: Mapping[str, Profile]) -> Iterator[Event]:
    try:
        cast = read_cast(path)
    except CastError as error:
        raise ReplayError(str(error)) from None
    watcher = Watcher(_profile_of_cast(path, cast, cli, profiles), columns=cast.header.width, rows=cast.header.height)
    yield StateChanged(0.0, watcher.state)
    waiting = bytearray()
    fed_t = 0.0
    for event in cast.events:
        while watcher.due_at is not None and watcher.due_at <= event.t:
            due_t = watcher.due_at
            if waiting:
                watcher.feed(bytes(waiting), fed_t)
                waiting.clear()
            yield from watcher.quiet(due_t)
        if event.kind == "r" and (size := re.fullmatch(r"(\d+)x(\d+)", event.data)):
            watcher.resize(int(size[1]), int(size[2]), event.t)
        if event.kind != "o":
            continue
        fed_t = event.t
        waiting += event.data.encode("utf-8", "replace")
        watcher.note_output(event.t)
        piece = chunk or len(waiting)
        while len(waiting) >= piece > 0:
            watcher.feed(bytes(waiting[:piece]), event.t)
            del waiting[:piece]
    if waiting:
        watcher.feed(bytes(waiting), fed_t)
    while watcher.due_at is not None and watcher.due_at <= fed_t + FINAL_PAUSE_S:
        yield from watcher.quiet(watcher.due_at)
    yield from watcher.quiet(fed_t + FINAL_PAUSE_S)


def _profile_of_cast(path: Path, cast: Cast, cli: str | None, names: Mapping[str, Profile]) -> Profile:
    if cli:
        return profile_for(cli, names)
    for word in (
        *re.split(r"[\s/_.-]+", cast.header.title),
        *(part for name in reversed(path.parts) for part in re.split(r"[_.-]+", name)),
    ):
        if word in names and word != GENERIC:
            return names[word]
    output = "".join(event.data for event in cast.events if event.kind == "o")
    return next((names[name] for name, banner in _BANNERS if banner in output), names[GENERIC])


# --- session files -------------------------------------------------------------------------------------------------


def _is_session(path: Path) -> bool:
    if path.suffix == ".json":
        return True
    with path.open("rb") as file:
        first = decode_object(file.readline(16_777_216))
    return first is not None and not ("version" in first and "width" in first)


def _replay_session(path: Path, cli: str | None) -> Iterator[Event]:
    profile = profile_for(cli) if cli else _profile_of_session(path)
    reader = reader_for(profile)
    if reader is None:
        raise ReplayError(f"{profile.title} has no session file that the relay can read.")
    watcher = Watcher(profile)
    first_ms: int | None = None
    for record in TranscriptTail(path, reader).poll():
        first_ms = record.at_ms if first_ms is None and record.at_ms else first_ms
        t = round((record.at_ms - first_ms) / 1000, 3) if first_ms and record.at_ms else 0.0
        yield from watcher.heard([record], t)


def _profile_of_session(path: Path) -> Profile:
    profiles = load_profiles()
    with path.open("rb") as file:
        for _ in range(50):
            record = decode_object(file.readline(16_777_216)) or {}
            if "payload" in record:
                return profiles["codex"]
            if record.get("type") == "gemini" or "projectHash" in record or "messages" in record:
                return profiles["gemini"]
            if "uuid" in record or "parentUuid" in record:
                return profiles["claude"]
    raise ReplayError(f"{path.name} is not a session file of {', '.join(sorted(READERS))}; if it is one, name the CLI.")


# --- lines ---------------------------------------------------------------------------------------------------------


def line_of(event: Event) -> dict[str, Any]:
    """One event as a line of the output."""
    t = round(event.t, 3)
    match event:
        case StateChanged():
            return {"t": t, "kind": "state", "state": event.state.value}
        case CommandUnfinished():
            return {"t": t, "kind": "unfinished", "to": event.to, "reason": event.reason, "source": event.source}
        case CommandSeen():
            return {"t": t, **_command_fields(event), "source": event.source}
        case Noticed():
            return {"t": t, **_observation_fields(event.observation), "source": event.source}


def _command_fields(event: CommandSeen) -> dict[str, Any]:
    match event.command:
        case SendCommand() as command:
            extra = {
                "thread": command.thread,
                "data": command.data,
                "topic": command.topic,
                "message_kind": None if command.kind == "message" else command.kind,
            }
            return {
                "kind": "message",
                "to": ",".join(command.to),
                "body": command.body,
                **{name: value for name, value in extra.items() if value is not None},
            }
        case SpawnCommand() as command:
            return {"kind": "spawn", "name": command.name, "cli": command.cli, "task": command.task}
        case ReleaseCommand() as command:
            return {"kind": "release", "name": command.name}
        case ResultCommand() as command:
            return {"kind": "result", "task": command.task, "body": command.body}
        case JoinCommand() as command:
            return {"kind": "join", "channel": command.channel}
        case LeaveCommand() as command:
            return {"kind": "leave", "channel": command.channel}
        case VoteCommand() as command:
            return {"kind": "vote", "proposal": command.proposal, "choice": command.choice, "reason": command.reason}
        case FileCommand() as command:
            return {"kind": "file", "name": command.name}


def _observation_fields(seen: Observation) -> dict[str, Any]:
    match seen:
        case PermissionAsked(dialog) | QuestionAsked(dialog):
            return {
                "kind": dialog.kind,
                "question": dialog.question,
                "options": list(dialog.options),
                "selected": dialog.selected,
                "tool": dialog.tool,
                "subject": dialog.subject,
                "text": dialog.text,
                "digest": dialog.digest,
            }
        case TokensUsed():
            return {
                "kind": "tokens",
                "model": seen.model or "unknown",
                "inputTokens": seen.input_tokens,
                "outputTokens": seen.output_tokens,
                "cacheReadTokens": seen.cache_read_tokens,
                "cacheWriteTokens": seen.cache_write_tokens,
            }
        case ToolStarted():
            return {"kind": "tool", "phase": "started", "id": seen.id, "name": seen.name, "itemType": seen.item_type}
        case ToolEnded():
            return {"kind": "tool", "phase": "ended", "id": seen.id, "name": seen.name, "isError": seen.is_error}
        case FileTouched():
            return {
                "kind": "tool",
                "phase": "file",
                "operation": seen.operation,
                "filePath": seen.path,
                "linesChanged": seen.lines_changed,
                "diff": seen.diff or None,
            }
        case CommandRun():
            return {
                "kind": "tool",
                "phase": "command",
                "command": seen.command,
                "exitCode": seen.exit_code,
                "duration": seen.duration_ms,
                "stdout": seen.output or None,
                "stderr": seen.stderr or None,
            }
        case Uttered() | SpeechPart():
            return {"kind": "item", "itemType": seen.item_type, "id": seen.id, "text": seen.text}
        case MessageTaken():
            return {"kind": "taken", "text": seen.text, "messageId": seen.message_id}
