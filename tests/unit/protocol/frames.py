"""One good payload for every type of frame, and what the contract says about the types."""

from __future__ import annotations

import json
from typing import Any

# Section 2 of the contract, word for word.
V1_TYPES = (
    "HELLO", "WELCOME", "SEND", "DELIVER", "ACK", "NACK", "PING", "PONG", "ERROR", "BUSY", "RESUME", "SYNC", "BYE",
    "SUBSCRIBE", "UNSUBSCRIBE",
)  # fmt: skip
ADDED_TYPES = (
    "AGENT_EVENT", "CHANNEL_JOIN", "CHANNEL_LEAVE", "SPAWN", "SPAWN_RESULT", "RELEASE", "RELEASE_RESULT", "CONTROL",
    "LIST_AGENTS", "AGENTS", "HISTORY", "HISTORY_RESULT", "PROPOSE", "VOTE", "CONSENSUS", "CANCEL",
)  # fmt: skip

CLIENT_PAYLOADS: dict[str, dict[str, Any]] = {
    "HELLO": {
        "agent": "Alice",
        "cli": "claude",
        "version": 2,
        "capabilities": {"ack": True, "max_inflight": 8},
        "session": {"resume_token": "t"},
        "meta": {"pid": 1, "cwd": "/src"},
    },
    "RESUME": {
        "agent": "Alice",
        "resume_token": "t",
        "session_id": "s",
        "streams": [{"topic": "a", "peer": "Bob", "last_seq": 3}],
    },
    "SEND": {"body": "Hello ☃", "kind": "action", "thread": "t-1", "data": {"a": [1, None, "é"]}, "of the future": 1},
    "ACK": {"ack_id": "d_1", "seq": 4, "correlationId": "c", "response": "ok", "responseData": {"n": 1}},
    "NACK": {"nack_id": "d_1", "code": "AGENT_BUSY", "message": "Later.", "retry_after_ms": 100},
    "CANCEL": {"correlationId": "c"},
    "SUBSCRIBE": {"topic": "a.*"},
    "UNSUBSCRIBE": {"topic": "a.>"},
    "CHANNEL_JOIN": {"channel": "#dev"},
    "CHANNEL_LEAVE": {"channel": "#dev"},
    "LIST_AGENTS": {},
    "HISTORY": {"with": "Bob", "from": "Alice", "since": 1, "limit": 10, "pending": True},
    "SPAWN": {"name": "W", "cli": "codex", "task": "Build it.", "cwd": "/src"},
    "RELEASE": {"name": "W", "reason": "done"},
    "AGENT_EVENT": {"type": "agent.idle", "fields": {"a": 1}},
    "PROPOSE": {
        "title": "T",
        "participants": ["A", "B"],
        "description": "D",
        "consensusType": "weighted",
        "timeoutMs": 5,
        "quorum": "60%",
        "weights": {"A": 2},
    },
    "VOTE": {"proposalId": "p", "vote": "approve", "reason": "R", "heard": "screen"},
    "PING": {"nonce": {"any": ["thing"]}},
    "PONG": {"nonce": 7},
    "BYE": {"reason": "done"},
    "CONTROL": {"command": "input", "text": "y", "id": "x"},
}
DAEMON_PAYLOADS: dict[str, dict[str, Any]] = {
    "WELCOME": {
        "session_id": "ses_1",
        "resume_token": "t",
        "server": {"max_frame_bytes": 1, "heartbeat_ms": 2, "name": "n", "version": "v", "queue_capacity": 3, "max_inflight": 4},
        "negotiated_version": 2,
        "capabilities": ["ack"],
        "agent": "Alice",
        "reply_to": "r",
    },
    "SYNC": {
        "session_id": "s",
        "resume_token": "t",
        "streams": [{"topic": "", "peer": "B", "last_seq": 1, "server_last_seq": 2}],
    },
    "DELIVER": {"body": "Hello ☃", "data": {"a": 1e-300}},
    "ACK": {
        "ack_id": "m",
        "stage": "stored",
        "message_id": "msg_1",
        "recipients": 2,
        "queued": 1,
        "skipped": ["C"],
        "duplicate": True,
    },
    "NACK": {
        "nack_id": "m",
        "code": "QUEUE_FULL",
        "category": "delivery",
        "retryable": True,
        "details": {"to": "B"},
        "waited_ms": 5,
    },
    "ERROR": {"code": "INVALID_FORMAT", "message": "No.", "category": "validation", "fatal": True, "details": {"field": "v"}},
    "BUSY": {"to": "B", "queue_depth": 8, "queue_capacity": 10, "retry_after_ms": 1, "estimated_delay_ms": 2, "accepting": True},
    "AGENTS": {"agents": [{"name": "A"}], "server": {"name": "s"}, "reply_to": "r"},
    "HISTORY_RESULT": {"messages": [{"id": "msg_1"}], "next_cursor": "c", "trail": [{"stage": "stored"}], "reply_to": "r"},
    "SPAWN_RESULT": {"name": "W", "success": True, "session_id": "s", "reply_to": "r"},
    "RELEASE_RESULT": {"name": "W", "success": False, "error": "No such agent.", "reply_to": "r"},
    "CONSENSUS": {"proposalId": "p", "outcome": "approved", "votes": {"A": "approve"}, "resolution": "R."},
    **{kind: CLIENT_PAYLOADS[kind] for kind in ("AGENT_EVENT", "PING", "PONG", "BYE", "CONTROL")},
}
# What a payload cannot do without.
REQUIRED = {
    "HELLO": ["agent"],
    "RESUME": ["agent", "resume_token"],
    "SEND": ["body"],
    "ACK": ["ack_id"],
    "NACK": ["nack_id", "code"],
    "CANCEL": ["correlationId"],
    "SPAWN": ["name", "cli"],
    "RELEASE": ["name"],
    "AGENT_EVENT": ["type"],
    "PROPOSE": ["title", "participants"],
    "VOTE": ["proposalId", "vote"],
    "CONTROL": ["command"],
}
DELIVERY = {"seq": 1, "session_id": "ses_1", "message_id": "msg_1", "attempt": 2, "queued_ms": 3, "prev_seq": 0}


def envelope(kind: str, payload: Any = None, **fields: Any) -> dict[str, Any]:
    """A good envelope of that type; `fields` add to it or replace its parts."""
    found: dict[str, Any] = {"v": 2, "type": kind, "id": "id-1", "ts": 1_700_000_000_000, "payload": payload or {}}
    if kind == "DELIVER":
        found["delivery"] = DELIVERY
    return found | fields


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()
