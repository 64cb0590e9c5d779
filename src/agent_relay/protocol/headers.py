"""The header format: `NAME: value` lines, a blank line, the body. Outbox files and injected text are written in it.

One table lists every header, how its value is read and how it is written; whatever `write_headers` writes,
`parse_headers` reads back as the same message. The rules that the table cannot show:

- A line ends with LF or CRLF, a byte order mark at the beginning is skipped, and unknown headers are ignored.
- The body is everything after the first blank line, unchanged, but for one line end at its very end: editors and
  shells end a file with one, and it belongs to the file rather than to the body. `write_headers` adds it.
- CHECKSUM is that of the body so understood.

Every complaint is a `RelayError` whose `details` name the `header` and, where there is one, the `line`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agent_relay.protocol.checksums import check_checksum
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.header_table import HEADERS, Header, NotATarget, is_identifier, is_one_line
from agent_relay.protocol.names import check_agent_name, show
from agent_relay.protocol.payloads import LARGEST_NUMBER

REQUIRED = {
    "spawn": ("NAME", "CLI"),
    "release": ("NAME",),
    "join": ("TO",),
    "leave": ("TO",),
    "propose": (),
    "vote": ("NAME", "TYPE"),
    "withdraw": ("NAME",),
    "result": ("THREAD",),
    "event": ("TYPE",),
    "error": ("CODE",),
    "backpressure": (),
    "timeout": (),
    "hello": (),
    "welcome": (),
}
REQUIRED_OF_MESSAGES = ("TO",)  # of every other kind: those are messages, as on the wire
_HEADER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class HeaderMessage:
    """One message in the header format; a field is None, or empty, where its header is absent."""

    to: tuple[str, ...] = ()  # names, or one channel, or "*"
    body: str = ""
    kind: str = "message"
    thread: str | None = None
    id: str | None = None
    seq: int | None = None
    session: str | None = None
    checksum: str | None = None
    reply_to: str | None = None
    priority: int | None = None
    ttl_ms: int | None = None
    await_ms: int | None = None
    correlation: str | None = None
    require_ack: bool | None = None  # as written; `requires_ack` knows the default
    topic: str | None = None
    name: str | None = None
    cli: str | None = None
    cwd: str | None = None
    type: str | None = None
    version: int = 1
    code: str | None = None
    category: str | None = None
    retryable: bool | None = None
    retry_after_ms: int | None = None
    queue_depth: int | None = None
    queue_capacity: int | None = None
    delay_ms: int | None = None
    accepting: bool | None = None
    waited_ms: int | None = None
    capabilities: tuple[str, ...] = ()
    negotiated_version: int | None = None

    @property
    def requires_ack(self) -> bool:
        """A message that waits for an answer asks for an acknowledgement unless it says otherwise."""
        return self.await_ms is not None if self.require_ack is None else self.require_ack

    @property
    def target(self) -> str | list[str] | None:
        """`to` as the SEND envelope spells it."""
        return list(self.to) if len(self.to) > 1 else self.to[0] if self.to else None


def parse_headers(text: str) -> HeaderMessage:
    """The message in this text; raises MISSING_HEADER, INVALID_HEADER, INVALID_TARGET or CHECKSUM_MISMATCH."""
    _check_unicode(text)
    head, body = _split(text)
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for number, line in enumerate(head, start=1):
        name, value = _split_line(line, number)
        header = _BY_NAME.get(name)
        if header is None:
            continue
        if name in lines:
            raise _wrong(f"{name} is on line {lines[name]} and again on line {number}.", name, number)
        lines[name] = number
        values[header.field] = _read(header, value, number)
    message = HeaderMessage(body=body, **values)
    _check_whole(message, lines)
    return message


def write_headers(message: HeaderMessage) -> str:
    """The text of this message; raises as `parse_headers` does where the text could not be read back as the same."""
    _check_unicode(message.body)
    _check_whole(message, {})
    head = []
    for header in HEADERS:
        value = getattr(message, header.field)
        if value != getattr(_ABSENT, header.field):
            head.append(f"{header.name}: {_write(header, value)}\n")
    end = "\n" if message.body else ""
    return "".join((*head, "\n", message.body, end))


def write_error_answer(error: RelayError, *, correlation: str | None = None) -> str:
    """The text of the `.error` file that stands beside a file nobody could take.

    It never raises, or the author would learn nothing: a correlation that cannot be written is left out.
    """
    after = error.retry_after_ms
    answer = HeaderMessage(
        kind="error",
        code=error.code.value,
        category=error.code.category.value,
        retryable=error.code.retryable,
        retry_after_ms=after if after is not None and 0 <= after <= LARGEST_NUMBER else None,
        correlation=correlation if correlation is not None and is_identifier(correlation) else None,
        body=error.message.encode("utf-8", "backslashreplace").decode(),
    )
    return write_headers(answer)


# --- text into lines ---------------------------------------------------------------------------------------------


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise RelayError(ErrorCode.INVALID_FORMAT, f"Line {line} is not valid Unicode text.", line=line) from None


def _split(text: str) -> tuple[list[str], str]:
    """(header lines, body). Only the head is cut into lines: a body may be long."""
    head: list[str] = []
    start = 1 if text.startswith("\N{BYTE ORDER MARK}") else 0
    while start < len(text):
        end = text.find("\n", start)
        line = text[start:] if end < 0 else text[start:end]
        start = len(text) if end < 0 else end + 1
        if not line.strip(" \t\r"):
            return head, _cut_line_end(text[start:], crlf=line.endswith("\r"))
        head.append(line.removesuffix("\r"))
    return head, ""


def _cut_line_end(body: str, *, crlf: bool) -> str:
    # A CR before the last LF is part of the line end only in a text that ends its lines so.
    return body.removesuffix("\r\n") if crlf and body.endswith("\r\n") else body.removesuffix("\n")


def _split_line(line: str, number: int) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    name = name.rstrip(" \t")
    if not colon or _HEADER_NAME.fullmatch(name) is None:
        # The line is not shown: it may be the first of a body whose author forgot the headers.
        raise _wrong(f"Line {number} is not `NAME: value`. Headers come first, then a blank line, then the body.", None, number)
    return name.upper(), value.strip(" \t")


def _read(header: Header, text: str, line: int | None) -> Any:
    if not is_one_line(text):
        problem = "has control characters, or spaces around it" if text else "has no value"
        raise _wrong(f"{header.name} {problem}.", header.name, line)
    try:
        return header.read(text)
    except NotATarget as error:
        raise _wrong(f"{header.name}: {error}.", header.name, line, ErrorCode.INVALID_TARGET) from None
    except ValueError as error:
        raise _wrong(f"{header.name}: {error}.", header.name, line) from None


def _write(header: Header, value: Any) -> str:
    text: str = header.write(value)
    if _read(header, text, None) != value:
        raise _wrong(f"{header.name} cannot be {show(str(value))}.", header.name)
    return text


# --- what a message needs as a whole -----------------------------------------------------------------------------


def _check_whole(message: HeaderMessage, lines: dict[str, int]) -> None:
    for name in REQUIRED.get(message.kind, REQUIRED_OF_MESSAGES):
        if getattr(message, _BY_NAME[name].field) in (None, ()):
            raise RelayError(ErrorCode.MISSING_HEADER, f"{name} is missing: the kind {show(message.kind)} needs it.", header=name)
    if message.kind == "spawn" and message.name is not None:
        _check_spawn_name(message.name, lines.get("NAME"))
    if message.checksum is not None:
        try:
            check_checksum(message.body, message.checksum)
        except RelayError as error:
            raise _wrong(error.message, "CHECKSUM", lines.get("CHECKSUM"), error.code) from None


def _check_spawn_name(name: str, line: int | None) -> None:
    try:
        check_agent_name(name)
    except RelayError as error:
        raise _wrong(error.message, "NAME", line, error.code) from None


def _wrong(message: str, header: str | None, line: int | None = None, code: ErrorCode = ErrorCode.INVALID_HEADER) -> RelayError:
    error = RelayError(code, message)
    error.details = {key: value for key, value in (("header", header), ("line", line)) if value is not None}
    return error


_BY_NAME = {header.name: header for header in HEADERS}
_ABSENT = HeaderMessage()
