"""Sessions of MCP clients over HTTP: what each has subscribed to, and how far it has read.

A session is nothing that lets anybody in: that is the token's business. So one that is not known, as after a restart of the
daemon, simply begins again; its client need not notice.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict

from msgspec import Struct, field, json

from agent_relay.events.record import Record
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.mcp.resources import INBOX_URI, find_changed
from agent_relay.protocol.names import fold_name

MOST_SESSIONS = 200  # then the one that was silent for longest is forgotten
MOST_SUBSCRIPTIONS = 1_000
_LONGEST_ID = 128
_EXCHANGED = "message.exchanged"


class McpSession(Struct):
    seen: str = ""  # the last message that its inbox has shown; ids sort by time
    subscribed: set[str] = field(default_factory=set)

    def subscribe(self, uri: str) -> None:
        if len(self.subscribed) >= MOST_SUBSCRIPTIONS:
            raise RelayError(
                ErrorCode.INVALID_FORMAT, f"There are {MOST_SUBSCRIPTIONS} subscriptions; end some first.", field="uri"
            )
        self.subscribed.add(uri)

    def encode_updates(self, record: Record, own_name: str) -> bytes:
        """The notifications that an event of the relay makes for this session, as server-sent events; often none."""
        if not self.subscribed:
            return b""
        if record.type == _EXCHANGED:
            changed = find_changed(record.to, json.decode(record.line).get("thread"), own_name)
        else:
            changed = [INBOX_URI] if fold_name(record.to) == fold_name(own_name) else []
        return b"".join(_encode_update(uri) for uri in changed if uri in self.subscribed)


class McpSessions:
    def __init__(self) -> None:
        self._by_id: OrderedDict[str, McpSession] = OrderedDict()

    def find(self, id_: str | None) -> McpSession:
        """The session of that id, begun where it is not known; one that nobody else has where there is no id."""
        if not id_ or len(id_) > _LONGEST_ID:
            return McpSession()
        session = self._by_id.setdefault(id_, McpSession())
        self._by_id.move_to_end(id_)
        if len(self._by_id) > MOST_SESSIONS:
            self._by_id.popitem(last=False)
        return session

    def end(self, id_: str) -> None:
        self._by_id.pop(id_, None)


def new_id() -> str:
    return secrets.token_hex(16)


def _encode_update(uri: str) -> bytes:
    said = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
    return b"event: message\ndata: %b\n\n" % encode_json(said)
