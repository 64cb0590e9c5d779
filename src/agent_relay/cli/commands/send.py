"""`send`: one message, and what became of it."""

from __future__ import annotations

import contextlib
import secrets
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, agent_option, complete_names, find_place, read_duration_ms
from agent_relay.cli.output.formats import count, format_span
from agent_relay.cli.output.reasons import explain_waiting, show_waiting, waiting_lines
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.wrapper.outbox_commands import own_outbox, send_through
from agent_relay.protocol.durations import parse_duration_ms
from agent_relay.protocol.short_ids import short_id

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.receipts import Receipt
    from agent_relay.sdk.requests import Reply

_CLOSE_S = 2.0
_TOPIC = "topic:"
_DEFAULT_WAIT = "30s"
_WAITS = frozenset({"--wait", "--reply", "--await"})


def send(
    to: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="A name, names separated by commas, #channel, topic:NAME or '*'.", autocompletion=complete_names
        ),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from standard input.")],
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="[TIME]", help="Wait until everyone has it, at most 30s or the given time.")
    ] = None,
    reply: Annotated[
        str | None,
        typer.Option("--reply", metavar="[TIME]", help="Wait for an answer and print it, at most 30s or the given time."),
    ] = None,
    old_reply: Annotated[str | None, typer.Option("--await", metavar="TIME", help="Old name of --reply.")] = None,
    sender: Annotated[
        str | None, agent_option("--from", "Send under this name; by default AGENT_RELAY_NAME, else your login.", "--as")
    ] = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="NAME", help="The thread it belongs to.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Publish under this topic.")] = None,
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="What it is: message, action, state, thinking …")
    ] = "message",
    priority: Annotated[int | None, typer.Option("--priority", min=0, max=9, metavar="0-9", help="0 goes first, 9 last.")] = None,
    ttl: Annotated[str | None, typer.Option("--ttl", metavar="TIME", help="How long it may wait for delivery, e.g. 5m.")] = None,
    reply_to: Annotated[str | None, typer.Option("--reply-to", metavar="ID", help="The message this one answers.")] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Send a message and print its receipt.

    When this returns, the message is stored and will be delivered, even to an agent that is offline now. With --wait, it
    returns once the message is delivered. With --reply, it is a question: prints the answer, or why none came.
    """
    from agent_relay.cli.project.link import run

    place = find_place(socket, state_dir)
    if old_reply is not None:
        note_old_name("--await", "--reply")
    reply_ms = _read_wait(reply or old_reply, "--reply")
    wait_ms = _read_wait(wait, "--wait")
    if wait_ms is not None and reply_ms is not None:
        raise Failure("Choose --wait or --reply: an answer comes after the delivery.", USAGE)
    options: dict[str, Any] = {
        "kind": kind, "thread": thread, "topic": topic, "priority": priority, "reply_to": reply_to,
        "ttl_ms": None if ttl is None else read_duration_ms(ttl, "--ttl"),
    }  # fmt: skip
    body = read_body(text)
    target: str | list[str] | None = read_target(to)
    if isinstance(target, str) and target.startswith(_TOPIC):
        options["topic"] = target.removeprefix(_TOPIC)
        target = None
    screen = Screen()
    outbox = own_outbox(sender, place.socket)
    if outbox is not None:
        # The name is connected already, as the wrapper of this agent: it sends for us.
        return send_through(outbox, screen, target, body, options, wait_ms=wait_ms, reply_ms=reply_ms, as_json=as_json)

    async def work() -> int:
        relay = await _connect(place, sender)
        try:
            if reply_ms is not None:
                return await _ask(relay, screen, target, body, reply_ms, options, as_json=as_json)
            receipt = await relay.send(target, body, **options)
            if wait_ms is not None:
                return await _wait(relay, screen, receipt, wait_ms, as_json=as_json)
            waiting = await explain_waiting(relay, receipt.message_id) if receipt.recipients else []
            show_receipt(screen, receipt, waiting, as_json=as_json)
            return 0
        finally:
            await relay.close(_CLOSE_S)

    return run(work())


def spell_out_waits(words: list[str]) -> list[str]:
    """`--wait` alone is `--wait=30s`: the command-line library knows no option whose value may be left out."""
    spelled: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return spelled + words[at:]
        is_alone = word in _WAITS and not _is_duration(words[at + 1] if at + 1 < len(words) else "")
        spelled.append(f"{word}={_DEFAULT_WAIT}" if is_alone else word)
    return spelled


def _is_duration(text: str) -> bool:
    try:
        return parse_duration_ms(text) > 0
    except ValueError:
        return False


def note_old_name(old: str, new: str) -> None:
    """On standard error, so that no script's output changes."""
    sys.stderr.write(f"note: {old} is now called {new}; the old name still works.\n")


def _read_wait(text: str | None, flag: str) -> int | None:
    return None if text is None else read_duration_ms(text, flag)


def read_body(text: str) -> str:
    """The argument, or all of standard input without the end of its last line."""
    if text == "-":
        try:
            text = sys.stdin.buffer.read().decode("utf-8")
        except UnicodeDecodeError:
            raise Failure("Standard input is not valid UTF-8 text.", USAGE) from None
        text = text.removesuffix("\n").removesuffix("\r")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Failure("The text is not valid UTF-8.", USAGE) from None
    if not text:
        raise Failure("The message is empty; nothing was sent.", USAGE)
    return text


def read_target(to: str) -> str | list[str]:
    names = [name.strip() for name in to.split(",") if name.strip()]
    if not names:
        raise Failure("Say who the message is for: a name, names separated by commas, #channel or '*'.", USAGE)
    return names[0] if len(names) == 1 else names


async def _connect(place: Any, sender: str | None) -> RelayClient:
    from agent_relay.cli.project.link import NameInUse, connect_as

    try:
        # A window of one: whatever waits for this name is not for us to take, and at most one message is disturbed.
        return await connect_as(place, sender, max_inflight=1)
    except NameInUse as taken:
        raise Failure(f"{taken.sentence} Send under another name with --from.") from None


# --- without waiting --------------------------------------------------------------------------------------------------


def show_receipt(screen: Screen, receipt: Receipt, waiting: list[tuple[str, str]], *, as_json: bool) -> None:
    """`waiting`: who has not got it yet, and why."""
    if as_json:
        screen.json(
            {
                "message_id": receipt.message_id, "stage": "stored", "recipients": receipt.recipients,
                "queued": receipt.queued, "skipped": receipt.skipped,
                "waits": [{"name": name, "line": line} for name, line in waiting],
            }
        )  # fmt: skip
        return
    fate = [count(receipt.recipients, "recipient")]
    if receipt.queued:
        fate.append(f"{receipt.queued} offline")
    if receipt.skipped:
        fate.append(f"skipped, because their queues are full: {', '.join(receipt.skipped)}")
    screen.line(("stored", "bold green"), "  ", short_id(receipt.message_id), "  ", clean_line(", ".join(fate)))
    show_waiting(screen, waiting)


# --- until it is delivered ----------------------------------------------------------------------------------------------


async def _wait(relay: RelayClient, screen: Screen, receipt: Receipt, wait_ms: int, *, as_json: bool) -> int:
    from agent_relay.sdk.errors import TimedOut

    by: list[str] = []
    is_delivered = False
    with contextlib.suppress(TimedOut):
        by = [each.by for each in await receipt.delivered(wait_ms / 1000)]
        is_delivered = bool(by)
    show_delivery(screen, receipt.message_id, receipt.recipients, is_delivered, by, as_json=as_json)
    if not is_delivered:
        message = (await relay.message(receipt.message_id)).message
        waiting = waiting_lines(message, (await relay.agents()).agents)
        raise Failure(_why_not_yet(f"Not delivered within {format_span(wait_ms)}", message, waiting))
    return 0


def show_delivery(
    screen: Screen, message_id: str, recipients: int, is_delivered: bool, by: list[str], *, as_json: bool
) -> None:  # fmt: skip
    if as_json:
        stage = "delivered" if is_delivered else "stored"
        screen.json({"message_id": message_id, "stage": stage, "recipients": recipients, "delivered": is_delivered, "by": by})
    elif is_delivered:
        screen.line(("delivered", "bold green"), "  ", short_id(message_id), "  to ", (clean_line(", ".join(by)), "bold cyan"))


# --- with an answer -----------------------------------------------------------------------------------------------------


async def _ask(
    relay: RelayClient,
    screen: Screen,
    target: str | list[str] | None,
    body: str,
    timeout_ms: int,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> int:
    from agent_relay.sdk.errors import TimedOut

    id_ = f"s_{secrets.token_hex(16)}"
    reply: Reply | None = None
    with contextlib.suppress(TimedOut):
        reply = await relay.request(target, body, timeout_ms / 1000, id=id_, **options)
    message = await _find_sent(relay, id_)
    if as_json:
        screen.json(_receipt_with_answer(message, reply))
    elif reply is not None:
        show_answer(screen, str(message.get("message_id", "")), reply.by, reply.body)
    if reply is None:
        waiting = waiting_lines(message, (await relay.agents()).agents)
        raise Failure(_why_no_answer(message, timeout_ms, waiting))
    return 0


def show_answer(screen: Screen, message_id: str, by: str, body: str) -> None:
    screen.line(("answered", "bold green"), "  ", short_id(message_id), "  by ", (clean_line(by), "bold cyan"))
    screen.block(clean_block(body).rstrip("\n"))


async def _find_sent(relay: RelayClient, client_id: str) -> dict[str, Any]:
    page = await relay.history(from_=relay.name, limit=50)
    return next((message for message in page.messages if message.get("client_id") == client_id), {})


def _receipt_with_answer(message: dict[str, Any], reply: Reply | None) -> dict[str, Any]:
    recipients = message.get("recipients") or []
    answer = None if reply is None else {"by": reply.by, "body": reply.body, "response": reply.response, "data": reply.data}
    return {
        "message_id": message.get("message_id"), "stage": "stored" if reply is None else "delivered",
        "recipients": len(recipients), "statuses": recipients, "skipped": message.get("skipped") or [], "reply": answer,
        "answer": answer,  # the older name
    }  # fmt: skip


def _why_no_answer(message: dict[str, Any], timeout_ms: int, waiting: list[tuple[str, str]]) -> str:
    return _why_not_yet(f"No reply within {format_span(timeout_ms)}", message, waiting)


def _why_not_yet(waited: str, message: dict[str, Any], waiting: list[tuple[str, str]]) -> str:
    if not message:
        return f"{waited}, and it is not known whether the message was stored."
    where = ", ".join(f"{one['name']}: {one['status']}" for one in message.get("recipients") or [])
    why = "".join(f" {name} waits: {line}." for name, line in waiting)
    stored = f"The message is stored ({short_id(message['message_id'])}); {where or 'nobody was there to receive it'}."
    return clean_line(f"{waited}. {stored}{why}")
