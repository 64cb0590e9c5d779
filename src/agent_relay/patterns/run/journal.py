"""The journal of a run: a line for every answer and every finished step, so that the next attempt goes on where this one ended.

One file for each plan (file and variables together), locked while it runs; a line is on disk before the run goes on. A last line
that was cut off by a crash is dropped. The file goes when the run has succeeded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from types import TracebackType
from typing import Any

import msgspec

from agent_relay.patterns.run.plan import Plan
from agent_relay.patterns.tasks import Answer
from agent_relay.protocol.errors import ErrorCode, RelayError

FOLDER = "runs"
_FLAGS = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class _Line(msgspec.Struct, omit_defaults=True):
    run: str = ""  # the first: the name of the run
    key: str = ""  # an answer …
    answer: dict[str, Any] | None = None
    step: str = ""  # … or a step that is done
    value: dict[str, Any] | None = None


class Journal:
    """`name` is that of the run, the same in every attempt."""

    def __init__(self, state_dir: str, plan: Plan) -> None:
        self.path = os.path.join(state_dir, FOLDER, f"{plan.name}-{plan.digest[:16]}.jsonl")
        self.name = f"Run-{secrets.token_hex(3)}"
        self._answers: dict[str, Answer] = {}
        self._steps: dict[str, dict[str, Any]] = {}
        self._file: int | None = None

    @property
    def kept(self) -> int:
        """Answers of earlier attempts."""
        return len(self._answers)

    def open(self, *, is_fresh: bool = False) -> None:
        """Raises RelayError where the same plan runs already, OSError where the file cannot be used."""
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        self._file = os.open(self.path, _FLAGS, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            self._file = None
            raise RelayError(
                ErrorCode.REJECTED, "This file runs already, with the same variables. Wait for it, or give a copy another name.",
                reason="already_running",
            ) from None  # fmt: skip
        if is_fresh:
            os.ftruncate(self._file, 0)
        self._read()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _read(self) -> None:
        assert self._file is not None
        content = b""
        while piece := os.read(self._file, 1 << 20):
            content += piece
        whole = 0
        for raw in content.splitlines(keepends=True):
            try:
                line = msgspec.json.decode(raw, type=_Line)
                answer = None if line.answer is None else msgspec.convert(line.answer, Answer)
            except msgspec.MsgspecError:
                break
            if not raw.endswith(b"\n"):
                break
            whole += len(raw)
            self.name = line.run or self.name
            if answer is not None:
                self._answers[line.key] = answer
            if line.value is not None:
                self._steps[line.step] = line.value
        os.ftruncate(self._file, whole)
        os.lseek(self._file, whole, os.SEEK_SET)
        if not whole:
            self._write(_Line(run=self.name))

    def _write(self, line: _Line) -> None:
        assert self._file is not None
        data = msgspec.json.encode(line) + b"\n"
        while data:
            data = data[os.write(self._file, data) :]
        os.fsync(self._file)

    def step_value(self, step: str) -> dict[str, Any] | None:
        return self._steps.get(step)

    def keep_step(self, step: str, value: dict[str, Any]) -> None:
        self._steps[step] = value
        self._write(_Line(step=step, value=value))

    def memory_of(self, step: str) -> StepMemory:
        return StepMemory(self, step)

    def recall(self, key: str) -> Answer | None:
        return self._answers.get(key)

    def keep(self, key: str, answer: Answer) -> None:
        self._answers[key] = answer
        self._write(_Line(key=key, answer=msgspec.to_builtins(answer)))


class StepMemory:
    """`patterns.Memory`: the answers of one step."""

    def __init__(self, journal: Journal, step: str) -> None:
        self._journal = journal
        self._step = step

    def recall(self, key: str) -> Answer | None:
        return self._journal.recall(f"{self._step}:{key}")

    def keep(self, key: str, answer: Answer) -> None:
        self._journal.keep(f"{self._step}:{key}", answer)
