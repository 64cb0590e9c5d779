"""Reports of a client about itself: said once, not answered, and dropped where nobody hears it.

Its state is the exception: the daemon forgets it with the connection, so the newest one is said again on the next.
"""

from __future__ import annotations

from typing import Any

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.ids import wall_ms
from agent_relay.sdk.session import Session

_STATE = "agent.state"


class Reports:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._state: dict[str, Any] | None = None

    def say(self, kind: str, fields: dict[str, Any]) -> None:
        frame = self._encode(kind, fields)
        self._session.check_size(frame)
        if kind == _STATE:
            self._state = fields
        self._session.write(frame)

    def on_ready(self) -> None:
        if self._state is not None:
            self._session.write(self._encode(_STATE, self._state))

    def _encode(self, kind: str, fields: dict[str, Any]) -> bytes:
        payload = {"type": kind, "fields": fields}
        try:
            return encode_envelope("AGENT_EVENT", self._session.ids.next("r_"), wall_ms(), payload)
        except (TypeError, ValueError, RecursionError) as error:
            raise RelayError(ErrorCode.INVALID_FORMAT, f"The report cannot be written as JSON: {error}.") from None
