"""`send`, `spawn` and `release` inside a wrapped agent: a file in the agent's outbox, and its wrapper says what became of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.formats import count, format_span
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.protocol.names import BROADCAST, fold_name
from agent_relay.protocol.places import ENV_NAME, ENV_SOCKET, ENV_TOKEN
from agent_relay.protocol.short_ids import short_id

ENV_OUTBOX = "AGENT_RELAY_OUTBOX"
RECEIPT_PREFIX, WAITING, REPLY = "send-", ".waiting", ".reply"  # as terminal.outbox has them, which takes long to import
GRACE_S = 5.0  # after the time is over, for the wrapper to say so
ANSWER_S = 10.0
PROGRAM_S = 90.0
POLL_S = 0.02


def own_outbox(sender: str | None, socket: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The folder, inside a wrapped agent that speaks as itself and to its own daemon."""
    name, folder = environ.get(ENV_NAME), environ.get(ENV_OUTBOX)
    if not name or not folder or (sender is not None and fold_name(sender) != fold_name(name)):
        return None
    if environ.get(ENV_SOCKET) not in {None, "", socket}:
        return None
    return folder if os.path.isdir(folder) else None


def send_through(
    folder: str, screen: Screen, target: str | list[str] | None, body: str, options: Mapping[str, Any], *, wait_ms: int | None,
    reply_ms: int | None, as_json: bool,
) -> int:  # fmt: skip
    names = (target,) if isinstance(target, str) else tuple(target or (BROADCAST,))  # of a topic: everybody who listens to it
    name = make_name()
    if wait_ms is None and reply_ms is None:
        _show_receipt(screen, _ask(folder, name, ANSWER_S, to=names, body=body, **options), as_json=as_json)
        return 0
    with waiting(folder, name):
        wanted = {"await_ms": reply_ms} if reply_ms is not None else {"require_ack": True}
        receipt = _ask(folder, name, ANSWER_S, to=names, body=body, **wanted, **options)
        # That an answer did not come, the wrapper says; that a delivery did not, nobody but us.
        later = _wait_for_more(folder, name, (wait_ms or 0) / 1000 if reply_ms is None else reply_ms / 1000 + GRACE_S)
    if reply_ms is None:
        return _show_delivery(screen, receipt, later, wait_ms or 0, as_json=as_json)
    return _show_answer(screen, receipt, later, reply_ms, as_json=as_json)


def make_name() -> str:
    """A file's, for whose fate somebody waits."""
    return f"{RECEIPT_PREFIX}{time.time_ns()}-{secrets.token_hex(4)}"


@contextlib.contextmanager
def waiting(folder: str, name: str) -> Iterator[None]:
    """A lock that the wrapper can see: without it, nobody is there any more, and the answer is told to the agent itself."""
    path = os.path.join(folder, name + WAITING)
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
        for left in (path, os.path.join(folder, name + REPLY)):
            with contextlib.suppress(OSError):
                os.unlink(left)


def _wait_for_more(folder: str, name: str, timeout_s: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = look_for_more(folder, name)
        if found is not None:
            return found
        time.sleep(POLL_S)
    return {"error": ""}


def look_for_more(folder: str, name: str) -> dict[str, Any] | None:
    """The answer, or who has it by now; None: neither is known yet."""
    import msgspec

    text = _take(os.path.join(folder, name + REPLY))
    found: dict[str, Any] | None = None if text is None else msgspec.json.decode(text)
    return found


def _show_delivery(screen: Screen, receipt: dict[str, Any], later: dict[str, Any], wait_ms: int, *, as_json: bool) -> int:
    from agent_relay.cli.commands.send import show_delivery

    by = [str(name) for name in later.get("by", [])]
    show_delivery(screen, receipt["message_id"], receipt["recipients"], "error" not in later and bool(by), by, as_json=as_json)
    if "error" in later or not by:
        raise Failure(_why(f"Not delivered within {format_span(wait_ms)}", receipt, later))
    return 0


def _show_answer(screen: Screen, receipt: dict[str, Any], later: dict[str, Any], reply_ms: int, *, as_json: bool) -> int:
    from agent_relay.cli.commands.send import show_answer

    reply = None if "error" in later else later
    if as_json:
        stage = "stored" if reply is None else "delivered"
        screen.json({"message_id": receipt["message_id"], "stage": stage, "recipients": receipt["recipients"], "reply": reply})
    if reply is None:
        raise Failure(_why(f"No reply within {format_span(reply_ms)}", receipt, later))
    if not as_json:
        show_answer(screen, receipt["message_id"], str(reply.get("by", "")), str(reply.get("body", "")))
    return 0


def _why(sentence: str, receipt: dict[str, Any], later: dict[str, Any]) -> str:
    more = f" {later['error']}" if later.get("error") else ""
    return clean_line(f"{sentence}. The message is stored ({receipt['message_id']}).{more}")


def _show_receipt(screen: Screen, receipt: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        screen.json({"message_id": receipt["message_id"], "stage": "stored", "recipients": receipt["recipients"],
                     "queued": receipt["queued"], "skipped": []})  # fmt: skip
    else:
        offline = f", {receipt['queued']} offline" if receipt["queued"] else ""
        screen.line(
            ("stored", "bold green"), f"  {short_id(receipt['message_id'])}  {count(receipt['recipients'], 'recipient')}{offline}"
        )


def ask_through(folder: str, **headers: Any) -> dict[str, Any]:
    """`spawn` and `release`, which take as long as a program does to start or to end; `join` and `leave`."""
    return _ask(folder, make_name(), PROGRAM_S, **headers)


def _ask(folder: str, file: str, timeout_s: float, /, **headers: Any) -> dict[str, Any]:
    drop_request(folder, file, **headers)
    return _wait_for_answer(folder, file, timeout_s)


def drop_request(folder: str, file: str, /, **headers: Any) -> None:
    from agent_relay.protocol.headers import HeaderMessage
    from agent_relay.terminal.output.outbox import drop_message

    headers["session"] = os.environ.get(ENV_TOKEN) or None  # a shell that outlived its agent's run does not speak for the next
    message = HeaderMessage(**{name: value for name, value in headers.items() if value is not None})
    drop_message(folder, file, message)


def _wait_for_answer(folder: str, name: str, timeout_s: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        receipt = look_for_answer(folder, name)
        if receipt is not None:
            return receipt
        time.sleep(POLL_S)
    raise Failure(
        f"Nothing picked up the message within {timeout_s:g} s. It stays in the outbox and is sent when the relay is back."
    )


def look_for_answer(folder: str, name: str) -> dict[str, Any] | None:
    """The wrapper's receipt; None: there is none yet. Raises Failure with its reason where it refused the file."""
    import msgspec

    from agent_relay.protocol.headers import parse_headers
    from agent_relay.terminal.output.outbox import ERROR, FAILED, SENT

    path = os.path.join(folder, name)
    sent, error = _take(path + SENT), _take(path + ERROR)
    if error is not None and sent is None:
        _take(path + FAILED)
        refused = parse_headers(error)
        raise Failure(clean_line(refused.body), code=refused.code or "")
    receipt: dict[str, Any] | None = None if sent is None else msgspec.json.decode(sent)
    return receipt


def _take(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        os.unlink(path)
    except OSError:
        return None
    return text
