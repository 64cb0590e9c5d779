"""Open requests of a CLI: told to the listener when they are asked, answered through the door, and told again when they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from agent_relay.protocol.requests import AgentRequest, QuestionRequest
from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.door import Decision, DoorListener, NotOpen, Resolution
from agent_relay.terminal.output.json_fields import as_text
from agent_relay.terminal.output.observations import Observation

MAX_CHARACTERS = 2_000
DOOR, PERSON = "door", "person"  # who has answered
LATE = "It was already answered or withdrawn."


class Asked:
    """One thing that is asked: one request, or one for each question of several.

    `keys`: what the CLI calls each question, by the request's id; without it, as we do.
    """

    def __init__(self, requests: Sequence[AgentRequest], keys: Mapping[str, str] | None = None) -> None:
        self.requests = requests
        self._keys = keys or {}
        self.answers: dict[str, str] = {}  # by the CLI's key of the question
        self.ours: Resolution | None = None  # what we answered

    @property
    def is_question(self) -> bool:
        return isinstance(self.requests[0], QuestionRequest)

    @property
    def granted(self) -> Resolution:
        return Resolution.ANSWERED if self.is_question else Resolution.ALLOWED

    @property
    def can_be_answered(self) -> bool:
        return self.ours is None

    def add_answer(self, request: AgentRequest, answer: str) -> bool:
        """True: every question has one now."""
        self.answers[self._key_of(request)] = answer
        return len(self.answers) == len({self._key_of(each) for each in self.requests})

    def _key_of(self, request: AgentRequest) -> str:
        return self._keys.get(request.id, request.id)

    def release(self, by: str = "") -> None:
        """Lets go of whoever waits for an answer."""


A = TypeVar("A", bound=Asked)


class DoorRequests(Generic[A]):
    """`name`: that of the CLI, with which the ids of its requests begin."""

    def __init__(self, listener: DoorListener[Observation], name: str) -> None:
        self._listener = listener
        self._name = name
        self._open: list[A] = []
        self._count = 0

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def close(self) -> None:
        """Nothing is told any more. The dialogs stay, for the person."""
        for asked in self._open:
            asked.release()
        self._open.clear()

    def _new_id(self) -> str:
        self._count += 1
        return f"{self._name}-{self._count}"

    def _tell(self, asked: A) -> A:
        self._open.append(asked)
        for request in asked.requests:
            self._listener.door_asked(request)
        return asked

    def _find(self, request_id: str) -> tuple[A, AgentRequest]:
        for asked in self._open:
            for request in asked.requests:
                if request.id == request_id and asked.can_be_answered:
                    return asked, request
        raise NotOpen(LATE)

    def _settle(self, asked: A, resolution: Resolution, by: str) -> None:
        """Told once."""
        if asked not in self._open:
            return
        self._open.remove(asked)
        asked.release(by)
        for request in asked.requests:
            self._listener.door_resolved(request.id, resolution, by)


class HookRequests(DoorRequests[A], ABC):
    """Those that a hook tells of."""

    @abstractmethod
    def answer(self, request_id: str, decision: Decision) -> None:
        """Raises NotOpen when a person, or anybody else, was faster, and DoorError where only a person can answer."""


def cut(value: object) -> str:
    """Text that is fit to be shown; empty for anything else."""
    return clean(as_text(value))[:MAX_CHARACTERS]


def refusal(decision: Decision) -> str:
    """A refusal in the words that the agent is told."""
    said = f"Denied by {decision.by or 'the relay'}"
    return f"{said}: {decision.reason}" if decision.reason else f"{said}."
