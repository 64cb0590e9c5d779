"""Writes the parts of docs/ that the code already knows, so that they cannot drift from it.

    .venv/bin/python scripts/docs.py           rewrites the generated blocks
    .venv/bin/python scripts/docs.py --check   changes nothing, and fails if a block is stale

A page has blocks between `<!-- generated: NAME -->` and `<!-- end of NAME -->`; the rest of it is written by hand. What
things are called, their types and their defaults come from the source, what they mean from docs.toml beside this file.
A thing without a meaning there, or a meaning without its thing, is an error.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

from msgspec import NODEFAULT, Raw, Struct, inspect

from agent_relay.core.limits import Limits
from agent_relay.daemon.config_files import PROJECT_MAY
from agent_relay.daemon.settings import SETTINGS, Setting
from agent_relay.events.types import EVENT_TYPES
from agent_relay.ports.connection import FULL_BYTES
from agent_relay.protocol import envelope, names, negotiation, payloads
from agent_relay.protocol.durations import format_duration
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.framing import DELIVER_HEADROOM_BYTES
from agent_relay.protocol.header_table import HEADERS
from agent_relay.protocol.headers import REQUIRED, REQUIRED_OF_MESSAGES
from agent_relay.protocol.holds import Hold, HoldReason, describe_hold
from agent_relay.protocol.nesting import MAX_NESTING
from agent_relay.protocol.permission_modes import PERMISSION_MODES
from agent_relay.protocol.retry import RECONNECT, REDELIVERY, RetryPolicy
from agent_relay.protocol.states import CLIENT, DAEMON, ClientEvent, CloseReason, DaemonEvent
from agent_relay.transports.stream import _STOP_READING_BYTES

ROOT = Path(__file__).resolve().parents[1]
WORDS_FILE = Path(__file__).with_name("docs.toml")
BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end of (?P=name) -->)", re.DOTALL)

# Forwarded unread, so their structs hold raw bytes; the daemon looks at a SEND's through these.
READ_AS: dict[tuple[type[Struct], str], type[Struct]] = {
    (envelope.Send, "payload"): payloads.SendPayload,
    (envelope.Send, "payload_meta"): payloads.SendMeta,
}
COMMON_FIELDS = ("v", "id", "ts", "from")
ADDRESS_FIELDS = ("to", "topic")  # shown first, as they stand first in a frame

Words = dict[str, Any]
Row = tuple[str, ...]


class Stale(Exception):  # noqa: N818 - named by the condition
    """The words and the source do not fit together; the text says where."""


# --- Markdown --------------------------------------------------------------------------------------------------------


def table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def meanings(words: Mapping[str, str], things: Sequence[str], where: str) -> Iterator[tuple[str, str]]:
    """Each thing with its meaning; raises Stale unless words and things are the same set."""
    if missing := [thing for thing in things if thing not in words]:
        raise Stale(f"{WORDS_FILE.name} does not say what these mean: {', '.join(missing)} (in {where})")
    if extra := [thing for thing in words if thing not in things]:
        raise Stale(f"{WORDS_FILE.name} explains what is not there: {', '.join(extra)} (in {where})")
    return ((thing, words[thing]) for thing in things)


# --- settings, errors, limits ------------------------------------------------------------------------------------------


def settings_table(settings: Sequence[Setting] = SETTINGS) -> str:
    rows = []
    for s in settings:
        may = "lower" if s.name in PROJECT_MAY else "no"
        rows.append((code(s.flag), code(s.env), code(s.name), may, code(s.default) if s.default else "none", sentence(s.help)))
    return table(("flag", "variable", "key", "in a project", "default", "meaning"), rows)


def errors_table(codes: Iterable[ErrorCode] = ErrorCode) -> str:
    rows = [
        (code(c.value), c.category.value, "yes" if c.retryable else "no", c.meaning, code(c.v1_code) if c.v1_code else "none")
        for c in codes
    ]
    return table(("code", "category", "retryable", "meaning", "v1 code"), rows)


def permission_modes_table() -> str:
    rows = []
    for cli, modes in PERMISSION_MODES.items():
        asking = [code(name) for name, mode in modes.items() if not mode.asks_nobody]
        silent = [code(name) for name, mode in modes.items() if mode.asks_nobody]
        rows.append((code(cli), ", ".join(asking), ", ".join(silent)))
    return table(("CLI", "modes", "nobody is asked"), rows)


def holds_table() -> str:
    """Each reason as it is shown of an agent Bob."""
    rows = []
    for reason in HoldReason:
        example = Hold(reason.value, "what was seen", "Alice", 1, 61, "3f9c2a11", "permission")
        rows.append((code(reason.value), describe_hold(example, "Bob", lambda _: "14:02").line))
    return table(("reason", "what is shown"), rows)


def limits_table(words: Words) -> str:
    flags = {setting.name: setting for setting in SETTINGS}
    rows: list[Row] = []
    fixed: list[tuple[str, object]] = []
    defaults = {field.name: field.default for field in dataclasses.fields(Limits)} | {"arc_ephemeral": False}  # ARC's own
    for name, default in defaults.items():
        setting = flags.get(name) or flags.get(name.removesuffix("_ms"))
        if setting is None:
            fixed.append((name, default))
        else:
            rows.append((code(name), setting.default or "none", code(setting.flag), sentence(setting.help)))
    fixed += [
        ("max_nesting", MAX_NESTING),
        ("largest_number", payloads.LARGEST_NUMBER),
        ("topic_length", names.MAX_TOPIC_LENGTH),
        ("deliver_headroom_bytes", DELIVER_HEADROOM_BYTES),
        ("full_buffer_bytes", FULL_BYTES),
        ("stop_reading_bytes", _STOP_READING_BYTES),
        ("redelivery", _describe_policy(REDELIVERY)),
        ("reconnect", _describe_policy(RECONNECT)),
    ]
    values = dict(fixed)
    explained = meanings(words["limits"], list(values), "limits")
    rows += [(code(name), str(values[name]), "fixed", meaning) for name, meaning in explained]
    return table(("limit", "default", "flag", "meaning"), rows)


def _describe_policy(policy: RetryPolicy) -> str:
    first, most = format_duration(policy.base_ms), format_duration(policy.cap_ms)
    return f"{first} ms, ×{policy.factor}, at most {most}, ±{policy.jitter:.0%}"


def reserved_names() -> str:
    return "Reserved, in any case: " + ", ".join(code(name) for name in sorted(names.RESERVED)) + ".\n"


def capabilities_table(words: Words) -> str:
    rows = [(code(name), meaning) for name, meaning in meanings(words["capabilities"], negotiation.CAPABILITIES, "capabilities")]
    return table(("capability", "meaning"), rows)


def headers_table(words: Words) -> str:
    explained = meanings(words["headers"], [header.name for header in HEADERS], "headers")
    return table(("header", "value"), [(code(name), meaning) for name, meaning in explained])


def header_kinds_table() -> str:
    rows = [("any other", ", ".join(map(code, REQUIRED_OF_MESSAGES)))]
    rows += [(code(kind), ", ".join(map(code, needed)) or "nothing") for kind, needed in REQUIRED.items()]
    return table(("kind", "needs"), rows)


def events_table(words: Words) -> str:
    rows = []
    for kind, meaning in meanings(words["events"], list(EVENT_TYPES), "events"):
        fields = [field for field in _fields(EVENT_TYPES[kind]) if field.encode_name[:1] != "_"]
        rows.append((code(kind), ", ".join(map(_event_field, fields)), meaning))
    return table(("type", "fields", "meaning"), rows)


def _event_field(field: inspect.Field) -> str:
    name = code(field.encode_name + ("" if field.required else "?"))
    for part in _alternatives(field.type):
        if isinstance(part, inspect.StructType):
            return f"{name} ({', '.join(map(_event_field, part.fields))})"
        if isinstance(part, inspect.LiteralType):
            return f"{name}: {', '.join(map(code, part.values))}"
    return name


# --- states ------------------------------------------------------------------------------------------------------------


def state_diagram(states: Mapping[Any, Mapping[Any, Any]]) -> str:
    """The first state of the table is where a connection begins, one without transitions is where it ends."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {next(iter(states))}"]
    for state, transitions in states.items():
        lines += [f"    {state} --> {after} : {event}" for event, after in transitions.items()]
        if not transitions:
            lines.append(f"    {state} --> [*]")
    return "\n".join([*lines, "```", ""])


def enum_table(kind: type[StrEnum], words: Mapping[str, str], head: str) -> str:
    explained = meanings(words, [member.value for member in kind], kind.__name__)
    return table((head, "meaning"), [(code(value), meaning) for value, meaning in explained])


def states_block(states: Mapping[Any, Mapping[Any, Any]], events: type[StrEnum], words: Mapping[str, str]) -> str:
    return state_diagram(states) + "\n" + enum_table(events, words, "event")


# --- frames ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A type of frame in one direction."""

    tag: str
    struct: type[Struct]
    direction: str  # client, daemon, either


def kinds() -> list[Kind]:
    from_client, from_daemon = get_args(envelope.ClientFrame), get_args(envelope.DaemonFrame)
    found = []
    for struct in dict.fromkeys((*from_client, *from_daemon)):
        direction = (
            "either" if struct in from_client and struct in from_daemon else "client" if struct in from_client else "daemon"
        )
        found.append(Kind(str(struct.__struct_config__.tag), struct, direction))
    return found


def frame_blocks(words: Words, direction: str) -> str:
    """One table a type that this daemon offers."""
    known = [kind for kind in kinds() if kind.direction == direction]
    given: dict[str, Words] = words["frames"][direction]
    list(meanings(dict.fromkeys(given, ""), [kind.tag for kind in known], f"frames.{direction}"))
    return "\n".join(_frame_block(kind, given[kind.tag]) for kind in known)


def _frame_block(kind: Kind, words: Words) -> str:
    fields = list(frame_fields(kind.struct))
    explained = dict(meanings(words.get("fields", {}), [path for path, _, _ in fields], f"frames.{kind.direction}.{kind.tag}"))
    text = f"#### {kind.tag}{' (receipt)' if kind.struct is envelope.Receipt else ''}\n\n{words['about'].strip()}\n"
    if answer := words.get("answer"):
        text += f"\nAnswered with: {answer.strip()}\n"
    if fields:
        rows = [(code(path), shape, need, explained[path]) for path, shape, need in fields]
        text += "\n" + table(("field", "value", "default", "meaning"), rows)
    return text


def envelope_table(words: Words) -> str:
    """The fields of every frame; `type` is the tag of the structs and no field of theirs."""
    found = {field.encode_name: field for field in _fields(envelope.Envelope)}
    rows = []
    for name, meaning in meanings(words["envelope"], ["v", "type", *list(found)[1:]], "envelope"):
        field = found.get(name)
        rows.append((code(name), _shape(field.type) if field else "string", _need(field) if field else "required", meaning))
    return table(("field", "value", "default", "meaning"), rows)


def frame_fields(struct: type[Struct]) -> Iterator[Row]:
    """(path, what it may be, its default) of everything a frame of this type has beside the common fields."""
    for field in sorted(_fields(struct), key=lambda field: field.encode_name not in ADDRESS_FIELDS):
        if field.encode_name in COMMON_FIELDS:
            continue
        inner = READ_AS.get((struct, field.encode_name))
        found = inspect.type_info(inner) if inner is not None else field.type
        if isinstance(found, inspect.StructType):
            yield from _paths(found, f"{field.encode_name}.")
        else:
            yield field.encode_name, _shape(found), _need(field)


def _fields(struct: type[Struct]) -> tuple[inspect.Field, ...]:
    found = inspect.type_info(struct)
    assert isinstance(found, inspect.StructType)
    return found.fields


def _paths(struct: inspect.StructType, prefix: str) -> Iterator[Row]:
    for field in struct.fields:
        path = prefix + field.encode_name
        nested = [part for part in _alternatives(field.type) if isinstance(part, inspect.StructType)]
        if len(nested) == 1:
            yield from _paths(nested[0], f"{path}.")
            continue
        yield path, _shape(field.type), _need(field)
        for part in _alternatives(field.type):
            if isinstance(part, inspect.ListType) and isinstance(part.item_type, inspect.StructType):
                yield from _paths(part.item_type, f"{path}[].")


def _alternatives(found: inspect.Type) -> list[inspect.Type]:
    parts = found.types if isinstance(found, inspect.UnionType) else (found,)
    return [part for part in parts if not isinstance(part, inspect.NoneType)]


def _need(field: inspect.Field) -> str:
    if field.required:
        return "required"
    if field.default is NODEFAULT or field.default is None or isinstance(field.default, Raw):
        return "none"
    return code(json.dumps(field.default))


def _shape(found: inspect.Type) -> str:
    parts = _alternatives(found)
    if {type(part) for part in parts} == {inspect.IntType, inspect.FloatType}:
        return "number"
    return " or ".join(map(_shape_of_one, parts))


def _shape_of_one(found: inspect.Type) -> str:
    match found:
        case inspect.StrType(pattern=str(pattern)):
            return f"string, {code(pattern.removeprefix(chr(92) + 'A').removesuffix(chr(92) + 'Z'))}"
        case inspect.StrType(min_length=int(least), max_length=int(most)):
            return f"string, {least} to {most} characters"
        case inspect.StrType():
            return "string"
        case inspect.IntType(ge=int(least), le=int(most)) if most < payloads.LARGEST_NUMBER:
            return f"integer, {least} to {most}"
        case inspect.IntType(ge=int(least)):
            return f"integer, {least} or more"
        case inspect.IntType():
            return "integer"
        case inspect.FloatType():
            return "number"
        case inspect.BoolType():
            return "boolean"
        case inspect.LiteralType(values=values):
            return " or ".join(map(str, values))
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return "list of objects" if isinstance(item, inspect.StructType | inspect.DictType) else f"list of {_shape(item)}s"
        case inspect.DictType() | inspect.StructType():
            return "object"
        case inspect.RawType() | inspect.AnyType():
            return "any JSON"
        case _:
            raise Stale(f"there is no name for the type {found}")


# --- pages -------------------------------------------------------------------------------------------------------------


def build_blocks(words: Words) -> dict[str, dict[str, Callable[[], str]]]:
    """For each page, what stands in each of its blocks."""
    return {
        "docs/errors.md": {"codes": errors_table},
        "docs/glossary.md": {"holds": holds_table},
        "docs/configuration.md": {"settings": settings_table},
        "docs/permissions.md": {"permission-modes": permission_modes_table},
        "docs/events.md": {"events": lambda: events_table(words)},
        "docs/protocol.md": {
            "envelope": lambda: envelope_table(words),
            "reserved-names": reserved_names,
            "capabilities": lambda: capabilities_table(words),
            "client-frames": lambda: frame_blocks(words, "client"),
            "daemon-frames": lambda: frame_blocks(words, "daemon"),
            "frames-either-way": lambda: frame_blocks(words, "either"),
            "close-reasons": lambda: enum_table(CloseReason, words["close_reasons"], "reason"),
            "daemon-states": lambda: states_block(DAEMON, DaemonEvent, words["daemon_events"]),
            "client-states": lambda: states_block(CLIENT, ClientEvent, words["client_events"]),
            "header-kinds": header_kinds_table,
            "headers": lambda: headers_table(words),
            "limits": lambda: limits_table(words),
        },
    }


def read_words() -> Words:
    return tomllib.loads(WORDS_FILE.read_text("utf-8"))


def fill(page: str, blocks: Mapping[str, Callable[[], str]]) -> str:
    """The page with its blocks as they have to be; raises Stale if it lacks one, or has one nobody knows."""
    found = [match["name"] for match in BLOCK.finditer(page)]
    if sorted(found) != sorted(blocks):
        raise Stale(f"the page has the blocks {sorted(found)}, and should have {sorted(blocks)}")
    return BLOCK.sub(lambda match: f"{match[1]}\n{blocks[match['name']]().strip()}\n\n{match[3]}", page)


def main(arguments: Sequence[str]) -> int:
    if list(arguments) not in ([], ["--check"]):
        sys.stderr.write("usage: docs.py [--check]\n")
        return 2
    stale = []
    for name, blocks in build_blocks(read_words()).items():
        path = ROOT / name
        before = path.read_text("utf-8")
        try:
            after = fill(before, blocks)
        except Stale as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 1
        if before != after:
            stale.append(name)
            if not arguments:
                path.write_text(after, "utf-8")
    if arguments and stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run scripts/docs.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
