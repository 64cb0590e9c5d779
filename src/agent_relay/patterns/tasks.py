"""Tasks for agents, their answers, and the progress that is told on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, fold_name

MAX_NAME = 48  # an agent's name has 64 characters at most, and its number and the mark of the run are added


@dataclass(frozen=True, slots=True)
class Task:
    """One agent's work. Its name becomes the beginning of the agent's, so it is made of letters, digits, `_`, `.` and `-`."""

    name: str
    cli: str
    task: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an agent to its task."""

    name: str  # the task's
    agent: str
    text: str
    attempts: int
    duration_s: float  # from the first attempt on
    value: Any = None  # what the result was read as, where a schema was given; else the text
    task_id: str = ""


class AgentFailed(RelayError):  # noqa: N818 - named by the condition
    """A task has no answer: its agent could not be started, ended, or took too long, in the last attempt it had."""

    def __init__(self, task: str, agent: str, attempts: int, reason: RelayError) -> None:
        super().__init__(reason.code, reason.message, retry_after_ms=reason.retry_after_ms)
        self.details = {**reason.details, "task": task, "agent": agent, "attempts": attempts}
        self.task = task
        self.agent = agent
        self.attempts = attempts


Step: TypeAlias = Literal["started", "answered", "asked_again", "failed", "escalated", "recalled", "released"]


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a run. A failed attempt is told before it is tried again."""

    kind: Step
    task: str
    agent: str
    attempt: int
    done: int  # tasks that are answered, or given up
    total: int
    error: str | None = None


class Memory(Protocol):
    """Answers of an earlier run that was broken off: a task that is in it is not given to an agent again."""

    def recall(self, key: str) -> Answer | None: ...

    def keep(self, key: str, answer: Answer) -> None:
        """Once this returns, the answer outlives this process."""
        ...


OnProgress: TypeAlias = Callable[[Progress], None]


def read_task(given: Task | Mapping[str, Any]) -> Task:
    """Raises RelayError for what is none."""
    try:
        task = given if isinstance(given, Task) else Task(**given)
    except TypeError:
        raise RelayError(ErrorCode.INVALID_FORMAT, "A task has exactly the keys `name`, `cli` and `task`.") from None
    check_agent_name(task.name)
    if len(task.name) > MAX_NAME:
        raise RelayError(ErrorCode.INVALID_TARGET, f"A task's name may have at most {MAX_NAME} characters.", name=task.name)
    return task


def check_unique_names(field: str, tasks: Sequence[Task]) -> None:
    if len({fold_name(task.name) for task in tasks}) < len(tasks):
        raise RelayError(ErrorCode.INVALID_FORMAT, f"Each of the {field} needs a name of its own.", field=field)


def check_positive(field: str, value: float) -> None:
    if not value > 0:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"`{field}` must be greater than 0.", field=field)
