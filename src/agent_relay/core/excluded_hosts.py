"""Hosts that the cluster has excluded: the seat links itself to none of them, and none of them claims the seat.

The list is a document of the store, so that every host has it in its copy, the excluded one too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from agent_relay.core.context import Context
from agent_relay.core.rights import ADMIN, Rights
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.hosts import is_host_name
from agent_relay.protocol.names import show

if TYPE_CHECKING:
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope

DOCUMENT = "excluded-hosts"
COMMANDS = frozenset({"exclude_host", "include_host"})

Keep = Callable[[str, bytes, Callable[[], None]], None]  # the document, its content, and what to do once it is durable


def read_excluded(documents: Mapping[str, bytes]) -> frozenset[str]:
    try:
        return frozenset(msgspec.json.decode(documents.get(DOCUMENT) or b"[]", type=list[str]))
    except msgspec.MsgspecError:
        return frozenset()


class ExcludedHosts:
    def __init__(self, context: Context, rights: Rights, keep: Keep, hosts: frozenset[str]) -> None:
        self._context = context
        self._rights = rights
        self._keep = keep
        self.hosts = hosts

    def receive(self, peer: Peer, frame: envelope.Control) -> None:
        """By whoever may control what runs at the seat."""
        host = frame.payload.host or ""
        is_excluded = frame.payload.command == "exclude_host"
        try:
            self._rights.check_on(self._rights.caller_of(peer), ADMIN, self._context.host)
            self._check(host, is_excluded=is_excluded)
        except RelayError as error:
            peer.say_error(error, frame.id)
            return
        changed = self.hosts | {host} if is_excluded else self.hosts - {host}
        self._context.log.note(frame.payload.command, host=host)

        def kept() -> None:
            self.hosts = changed
            peer.say("ACK", {"ack_id": frame.id, "stage": "controlled", "by": host})

        self._keep(DOCUMENT, msgspec.json.encode(sorted(changed)), kept)

    def _check(self, host: str, *, is_excluded: bool) -> None:
        if not self._context.host:
            raise RelayError(ErrorCode.FEATURE_UNSUPPORTED, "This daemon is not part of a cluster.")
        if not is_host_name(host):
            raise RelayError(ErrorCode.INVALID_FORMAT, f"{show(host, 40)} is not the name of a host.", field="payload.host")
        if is_excluded and host == self._context.host:
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"{host} has the seat now, so it cannot be excluded. Stop its daemon first "
                "(agent-relay down on that host); then another host has the seat.", field="payload.host", host=host,
            )  # fmt: skip
        if not is_excluded and host not in self.hosts:
            raise RelayError(ErrorCode.INVALID_TARGET, f"{host} is not excluded.", field="payload.host", host=host)
