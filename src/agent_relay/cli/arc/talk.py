"""Listening and sending as an agent of an ARC relay."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from agent_relay.arc.client import ArcClient
from agent_relay.arc.frames import EVERYONE, ArcMessage
from agent_relay.arc.link import Patience
from agent_relay.cli.arc.identity import Identity
from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.output.message_view import show_heading, show_text
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen


async def listen_as(
    identity: Identity, screen: Screen, subscribe: Sequence[str], since: str | None, limit: int | None, *, as_json: bool
) -> int:
    shown = 0
    async with ArcClient(
        identity.url, identity.token, agent_id=identity.agent_id, since=since, subscriptions=subscribe
    ) as client:  # fmt: skip
        async for message in client.messages():
            _show(screen, message, as_json=as_json)
            screen.flush()
            shown += 1
            if shown == limit:
                break
    further = [message async for message in client.messages()] if shown == limit else []
    if further:
        count = f"{len(further)} more messages were" if len(further) > 1 else "One more message was"
        where = f"--as {client.agent_id} --since {message.id}"
        Screen(sys.stderr).line(clean_line(f"{count} delivered but not shown. Continue with: agent-relay arc listen {where}"))
    return 0


async def send_as(identity: Identity, screen: Screen, to: str | list[str], payload: Any, *, as_json: bool) -> int:
    targets = [to] if isinstance(to, str) else to
    async with ArcClient(identity.url, identity.token, agent_id=identity.agent_id, patience=Patience(attempts=0)) as client:
        if EVERYONE in targets:
            id_ = None
            failures: list[Exception] = []
            client.on_error = failures.append
            await client.broadcast(payload)
            await client.ping()  # answered after the message, so an error would have come by now
            if failures:
                raise failures[0]
        else:
            id_ = await client.send(targets, payload, confirm=True)
    received = [message async for message in client.messages()]  # what had waited came along, and does not come again
    if as_json:
        found = [dict(message.fields) for message in received]
        screen.json({"id": id_, "from": client.agent_id, "to": targets, "received": found})
        return 0
    screen.line(("sent", "bold green"), f"  {client.agent_id or ''} → {', '.join(targets)}", (f"  {id_ or ''}", "dim"))
    for message in received:
        _show(screen, message, as_json=False)
    return 0


def read_payload(text: str, *, parse: bool) -> Any:
    if not parse:
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failure(f"--parse needs JSON, and TEXT is not: {error}.", USAGE) from None


def _show(screen: Screen, message: ArcMessage, *, as_json: bool) -> None:
    if as_json:
        screen.json_line(dict(message.fields))
        return
    text = message.payload if isinstance(message.payload, str) else json.dumps(message.payload, ensure_ascii=False)
    shown = {
        "message_id": message.id, "from": message.from_, "to": list(message.to), "ts": message.ts, "kind": message.type,
        "payload": {"body": text},
    }  # fmt: skip
    show_heading(screen, shown)
    show_text(screen, shown, whole=True)
