"""Confirmations that the relay itself asks of a person: each a request of the agent, answered where all others are.

No dialog stands on the agent's screen for it, so it is answered from the page or the command line alone. It is open until
somebody answers, and ends with the wrapper.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from agent_relay.protocol.requests import PermissionRequest
from agent_relay.terminal.doors.door import Decision, Resolution
from agent_relay.terminal.reports.reporter import Reporter

MAX_OPEN = 5  # a screen full of such lines must not hide what else is asked
_OURS = "door"  # whoever answered is told that it was carried out


class Confirmations:
    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._open: dict[str, tuple[str, Callable[[Decision], None]]] = {}  # by request id: what it is about, and who waits

    def ask(self, tool: str, words: str, text: str, decided: Callable[[Decision], None]) -> bool:
        """False where too many are open. The same words are asked about once."""
        if any(words == known for known, _ in self._open.values()):
            return True
        if len(self._open) >= MAX_OPEN:
            return False
        id_ = f"relay-{secrets.token_hex(4)}"
        self._open[id_] = words, decided
        # Read off a screen: no rule approves it.
        self._reporter.asked(PermissionRequest(id_, text, tool, words or None, options=("allow", "deny"), is_exact=False))
        return True

    def answer(self, request_id: str, decision: Decision) -> bool:
        """False: it is no request of ours."""
        _, decided = self._open.pop(request_id, ("", None))
        if decided is None:
            return False
        self._reporter.resolved(request_id, Resolution.ALLOWED if decision.is_allowed else Resolution.DENIED, _OURS)
        decided(decision)
        return True
