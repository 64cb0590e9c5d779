"""JetStream's own words: subjects, settings of the stream and its readers, and what answers mean. Pure."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from agent_relay.ports.cluster import WireMessage
from agent_relay.protocol.hosts import LOG_DAYS

API = "$JS.API"
WRONG_LAST_SEQUENCE = 10071
NO_MESSAGE = 10037
NO_STREAM = 10059
STREAM_IN_USE = 10058  # exists with other settings
NOT_AVAILABLE = 10008  # nobody leads JetStream

_DAY_MS = 86_400_000
_LOG_BYTES = 16 * 1024**3
_MOST_READERS = 256  # one for each host that follows, and those that were just replaced
_GONE_AFTER_S = 30
HEARTBEAT_MS = 1_000


class ApiError(Struct, frozen=True):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _StreamState(Struct, frozen=True):
    first_seq: int = 0
    last_seq: int = 0


class Answer(Struct, frozen=True):
    """Every answer of the API that we ask for, in one shape; what it does not have keeps its default."""

    error: ApiError | None = None
    seq: int = 0  # of a publish
    duplicate: bool = False
    state: _StreamState | None = None  # of the stream
    config: dict[str, Any] = field(default_factory=dict)
    cluster: dict[str, Any] | None = None  # who leads the stream, and who follows
    message: dict[str, Any] | None = None  # one stored record: its headers are base64


def read_answer(message: WireMessage | None) -> Answer | None:
    """None: nothing is known; ask again."""
    if message is None or message.status:
        return None
    try:
        return msgspec.json.decode(message.payload, type=Answer)
    except msgspec.MsgspecError:
        return None


class Delivered(NamedTuple):
    stream_sequence: int
    consumer_sequence: int


_ACK = re.compile(r"\$JS\.ACK\.(?:[^.]+\.[^.]+\.)?[^.]+\.[^.]+\.\d+\.(\d+)\.(\d+)\.\d+\.\d+(?:\.[^.]+)?")


def read_place(reply: str) -> Delivered | None:
    """The position of a record that was delivered, from the subject it could be acknowledged at."""
    found = _ACK.fullmatch(reply)
    return None if found is None else Delivered(int(found[1]), int(found[2]))


class StreamNames(NamedTuple):
    log: str  # the subject of its records
    stream: str


class Names:
    """The subjects and streams of a project."""

    def __init__(self, project: str) -> None:
        self.log = f"relay.{project}.log"
        self.alive = f"relay.{project}.alive"
        self.who = f"relay.{project}.who"
        self.hosts = f"relay.{project}.hosts"
        self.ahead = f"relay.{project}.ahead"
        self.stream = f"RELAY_{project.upper().replace('-', '_')}_LOG"
        self.events = StreamNames(f"relay.{project}.events", f"RELAY_{project.upper().replace('-', '_')}_EVENTS")
        self._project = project

    def ask(self, host: str) -> str:
        return f"relay.{self._project}.ask.{host}"

    def to_seat(self, host: str, term: int) -> str:
        return f"relay.{self._project}.to.{host}.{term}"

    def ask_copy(self, host: str) -> str:
        return f"relay.{self._project}.ask.{host}.copy"

    def to_edge(self, host: str) -> str:
        return f"relay.{self._project}.to.{host}.d"


class Retention(NamedTuple):
    """The most that a stream keeps."""

    age_ms: int = LOG_DAYS * _DAY_MS
    size_bytes: int = _LOG_BYTES


LOG_RETENTION = Retention()


def stream_settings(names: Names | StreamNames, replicas: int, retention: Retention = LOG_RETENTION) -> dict[str, Any]:
    return {
        "name": names.stream,
        "subjects": [names.log],
        "storage": "file",
        "num_replicas": replicas,
        "retention": "limits",
        "discard": "old",
        "max_age": retention.age_ms * 1_000_000,
        "max_bytes": retention.size_bytes,
        "max_msgs": -1,
        "max_msg_size": -1,
        "max_consumers": _MOST_READERS,
        "duplicate_window": 120 * 1_000_000_000,
        "allow_direct": False,  # reads go to the leader, so that none is old
        "deny_delete": True,
        "deny_purge": True,
    }


def reader_settings(names: Names | StreamNames, after: int, inbox: str) -> dict[str, Any]:
    return {
        "stream_name": names.stream,
        "config": {
            "deliver_subject": inbox,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": after + 1,
            "ack_policy": "none",
            "max_deliver": 1,
            "num_replicas": 1,
            "mem_storage": True,
            "flow_control": True,
            "idle_heartbeat": HEARTBEAT_MS * 1_000_000,
            "inactive_threshold": _GONE_AFTER_S * 1_000_000_000,
        },
    }
