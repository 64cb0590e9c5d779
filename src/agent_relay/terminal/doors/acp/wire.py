"""Words between the wrapper and the console of an ACP agent, one JSON object a line, over a socket in the agent's folder.

The wrapper gives orders, and the console answers each (`Done`, `Refused`). What happens to the agent is numbered, and kept until
the wrapper has dealt with it (`Seen`): a wrapper that dies misses nothing, and the next one is told what this one was not.
"""

from __future__ import annotations

import os
from typing import TypeAlias

import msgspec
from msgspec import Struct

from agent_relay.protocol.places import MAX_SOCKET_PATH_BYTES, short_socket_directory
from agent_relay.protocol.requests import PermissionRequest
from agent_relay.terminal.doors.door import Decision, DoorMessage, DoorState, Resolution
from agent_relay.terminal.output.observations import (
    CommandRun,
    FileTouched,
    SpeechPart,
    TokensUsed,
    ToolEnded,
    ToolStarted,
    Uttered,
)

MAX_LINE_BYTES = 16_777_216
SOCKET = "acp.sock"

Noticeable: TypeAlias = ToolStarted | ToolEnded | Uttered | SpeechPart | TokensUsed | FileTouched | CommandRun

# --- the wrapper's -------------------------------------------------------------------------------------------------------


class Hello(Struct, frozen=True, tag="hello"):
    """`introduction` is given to the agent with the first prompt of a session."""

    introduction: str = ""


class Deliver(Struct, frozen=True, tag="deliver"):
    call: int
    message: DoorMessage


class Find(Struct, frozen=True, tag="find"):
    call: int
    message: DoorMessage


class Decide(Struct, frozen=True, tag="decide"):
    call: int
    request_id: str
    decision: Decision


class Seen(Struct, frozen=True, tag="seen"):
    number: int


Order: TypeAlias = Hello | Deliver | Find | Decide | Seen

# --- the console's -------------------------------------------------------------------------------------------------------


class Ready(Struct, frozen=True, tag="ready"):
    """The agent has a session."""

    version: str = ""
    note: str = ""


class Done(Struct, frozen=True, tag="done"):
    call: int
    said: str = ""


class Refused(Struct, frozen=True, tag="refused"):
    """`is_closed`: there is nothing (any more) that could be answered."""

    call: int
    reason: str
    is_closed: bool = False


class State(Struct, frozen=True, tag="state"):
    state: DoorState
    waiting_for: str = ""


class Read(Struct, frozen=True, tag="read"):
    message_id: str
    evidence: str


class Rejected(Struct, frozen=True, tag="rejected"):
    message_id: str
    reason: str


class Asked(Struct, frozen=True, tag="asked"):
    request: PermissionRequest


class Resolved(Struct, frozen=True, tag="resolved"):
    request_id: str
    resolution: Resolution
    by: str


class Noticed(Struct, frozen=True, tag="noticed"):
    observation: Noticeable


class Heard(Struct, frozen=True, tag="heard"):
    id: str
    text: str


Event: TypeAlias = State | Read | Rejected | Asked | Resolved | Noticed | Heard


class Happened(Struct, frozen=True, tag="happened"):
    number: int
    event: Event


Word: TypeAlias = Ready | Done | Refused | Happened

_ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)
_WORDS: msgspec.json.Decoder[Word] = msgspec.json.Decoder(Word)


def encode(said: Order | Word) -> bytes:
    return msgspec.json.encode(said) + b"\n"


def decode_order(line: bytes) -> Order:
    """Raises msgspec.DecodeError."""
    return _ORDERS.decode(line)


def decode_word(line: bytes) -> Word:
    """Raises msgspec.DecodeError."""
    return _WORDS.decode(line)


def socket_path(folder: str, project_id: str, agent: str) -> str:
    """In the agent's folder, or in a short place of the user's own where that path is too long for a socket."""
    path = os.path.join(folder, SOCKET)
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    return os.path.join(short_socket_directory(os.getuid()), project_id, f"{agent}.{SOCKET}")
