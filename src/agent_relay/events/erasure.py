"""The rest of an event when an agent is to be forgotten: nothing of what it did, said and was told; of costs the numbers.

What was said to several stays, as theirs, without its name. Costs stay, so that sums and budgets are what they were, but they are
nobody's: their agent is called `forgotten`.
"""

from __future__ import annotations

import msgspec

from agent_relay.events.codec import encode_event
from agent_relay.events.record import Record, read_record
from agent_relay.events.types import GapReason, StreamGap
from agent_relay.protocol.names import fold_name

FORGOTTEN = "forgotten"
_COSTS = "tokens.used"
_DECISIONS = "consensus."
_NAMES = (
    "agentName",
    "proposedBy",
    "voter",
    "agent",
    "spawnedBy",
    "releasedBy",
)  # fields that say who did it, or whom it is about


def erase_from(line: bytes, agent: str) -> bytes | None:
    """The line as it is, another one in its place, or None: it goes."""
    key = fold_name(agent)
    if key.encode() not in line.lower():
        return line
    record = read_record(line)
    if record is None:
        return line
    fields = msgspec.json.decode(line)
    if record.type == _COSTS:
        return _encode(fields | {"_agentName": FORGOTTEN, "agentName": FORGOTTEN}) if _is_about(record, fields, key) else line
    if _is_about(record, fields, key):
        return None
    if record.type.startswith(_DECISIONS):
        return _encode({name: _without(value, key) for name, value in fields.items()})
    others = [name for name in record.to.split(",") if fold_name(name.strip()) != key]
    return _encode(fields | {"to": ",".join(others)}) if len(others) < len(record.to.split(",")) else line


def _without(value: object, key: str) -> object:
    """Lists of participants, and what each of them said, without that one."""
    if isinstance(value, list):
        return [name for name in value if fold_name(str(name)) != key]
    if isinstance(value, dict):
        return {name: said for name, said in value.items() if fold_name(str(name)) != key}
    return value


def _is_about(record: Record, fields: dict[str, object], key: str) -> bool:
    about = {record.agent, record.sender, record.to, *(name for each in _NAMES if isinstance(name := fields.get(each), str))}
    if isinstance(started := fields.get("agent"), dict):
        about.add(str(started.get("name")))
    if isinstance(members := fields.get("agents"), list):
        about.update(map(str, members))
    return key in {fold_name(name.strip()) for name in about}


def stand_in(seq: int, ts: int, reason: GapReason | None = None) -> bytes:
    """In place of the newest event there is: its number must stay known, or it would be given out again."""
    return encode_event(StreamGap(seq=seq, ts=ts, oldest=seq + 1, reason=reason))


def _encode(fields: dict[str, object]) -> bytes:
    return msgspec.json.encode(fields)
