"""Receipts over ARC: what became of a message, for a sender who asked with `"receipt": true`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.ports.relay import Told
from agent_relay.ports.store import MessageRow
from agent_relay.protocol.arc.client_frames import Said, read_ref
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import BROADCAST, fold_name
from agent_relay.transports.arc.refusals import is_silent, translate_refusal

if TYPE_CHECKING:
    from agent_relay.transports.arc.connection import ArcConnection
    from agent_relay.transports.arc.hub import Hub

RECEIPT = "receipt"


def make_receipt(hub: Hub, connection: ArcConnection, said: Said) -> Told:
    """What the relay calls once it knows."""
    wanted, ref = [] if BROADCAST in said.to else said.to, read_ref(said)

    def told(outcome: MessageRow | RelayError) -> None:
        if isinstance(outcome, MessageRow):
            stored = [name for name, _ in outcome.recipients]
            found = {"id": outcome.id, "stored": stored, "unknown": _without(wanted, [*stored, *outcome.skipped])}
            if outcome.skipped:
                found["full"] = list(outcome.skipped)
            hub.answer(connection, RECEIPT, found, ref)
        elif is_silent(outcome.code):  # nobody is left whom it could be stored for
            hub.answer(connection, RECEIPT, {"id": None, "stored": [], "unknown": _without(wanted, [])}, ref)
        elif connection.is_open:
            connection.refuse(translate_refusal(outcome.code, outcome.message, ref))

    return told


def _without(names: list[str], known: list[str]) -> list[str]:
    """Each once, as it was written."""
    keys = {fold_name(name) for name in known}
    return [name for name in dict.fromkeys(names) if fold_name(name) not in keys]
