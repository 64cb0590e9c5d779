"""`send`, `spawn` and `release` inside a wrapped agent: a file in the agent's outbox, and its wrapper says what became of it."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping
from typing import Any

from agent_relay.cli.failures import Failure
from agent_relay.cli.formats import count
from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Screen
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.places import ENV_NAME, ENV_SOCKET, ENV_TOKEN
from agent_relay.protocol.short_ids import short_id

_ENV_OUTBOX = "AGENT_RELAY_OUTBOX"
ANSWER_S = 10.0
PROGRAM_S = 90.0
_POLL_S = 0.02


def own_outbox(sender: str | None, socket: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """The folder, inside a wrapped agent that speaks as itself and to its own daemon."""
    name, folder = environ.get(ENV_NAME), environ.get(_ENV_OUTBOX)
    if not name or not folder or (sender is not None and fold_name(sender) != fold_name(name)):
        return None
    if environ.get(ENV_SOCKET) not in {None, "", socket}:
        return None
    return folder if os.path.isdir(folder) else None


def send_through(
    folder: str, screen: Screen, target: str | list[str], body: str, options: Mapping[str, Any], *, as_json: bool
) -> int:
    names = (target,) if isinstance(target, str) else tuple(target)
    receipt = _ask(folder, ANSWER_S, to=names, body=body, **options)
    if as_json:
        screen.json({"message_id": receipt["message_id"], "stage": "stored", "recipients": receipt["recipients"],
                     "queued": receipt["queued"], "skipped": []})  # fmt: skip
    else:
        offline = f", {receipt['queued']} offline" if receipt["queued"] else ""
        screen.line(
            ("stored", "bold green"), f"  {short_id(receipt['message_id'])}  {count(receipt['recipients'], 'recipient')}{offline}"
        )
    return 0


def ask_through(folder: str, **headers: Any) -> dict[str, Any]:
    """`spawn` and `release`, which take as long as a program does to start or to end."""
    return _ask(folder, PROGRAM_S, **headers)


def _ask(folder: str, timeout_s: float, **headers: Any) -> dict[str, Any]:
    from agent_relay.protocol.headers import HeaderMessage
    from agent_relay.terminal.outbox import RECEIPT_PREFIX, drop_message

    headers["session"] = os.environ.get(ENV_TOKEN) or None  # a shell that outlived its agent's run does not speak for the next
    message = HeaderMessage(**{name: value for name, value in headers.items() if value is not None})
    name = f"{RECEIPT_PREFIX}{time.time_ns()}-{secrets.token_hex(4)}"
    drop_message(folder, name, message)
    return _wait_for_answer(folder, name, timeout_s)


def _wait_for_answer(folder: str, name: str, timeout_s: float) -> dict[str, Any]:
    import msgspec

    from agent_relay.protocol.headers import parse_headers
    from agent_relay.terminal.outbox import ERROR, FAILED, SENT

    path = os.path.join(folder, name)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        sent, error = _take(path + SENT), _take(path + ERROR)
        if sent is not None:
            receipt: dict[str, Any] = msgspec.json.decode(sent)
            return receipt
        if error is not None:
            _take(path + FAILED)
            raise Failure(clean_line(parse_headers(error).body))
        time.sleep(_POLL_S)
    raise Failure(
        f"Nobody has taken the message within {timeout_s:g} s. It stands in the outbox, and is sent when the relay is back."
    )


def _take(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        os.unlink(path)
    except OSError:
        return None
    return text
