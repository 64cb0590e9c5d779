"""Permissions that an ACP agent asks for: open until somebody picks one of its options, here or from elsewhere.

To approve from elsewhere is to pick the option that allows it this once. An agent that has none can be refused from there, and
is allowed at its terminal, by whoever reads there what the other options mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
)

from agent_relay.protocol.requests import PermissionRequest
from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.acp.tool_calls import Call
from agent_relay.terminal.acp.transcript import Look, Transcript
from agent_relay.terminal.doors.acp import wire
from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen, Resolution
from agent_relay.terminal.doors.requests import DOOR, LATE, PERSON, cut

_ONCE, _ALWAYS, _NO, _NEVER = "allow_once", "allow_always", "reject_once", "reject_always"
_ALLOWING = frozenset({_ONCE, _ALWAYS})
_MAX_ID = 60

Tell = Callable[[wire.Event], None]


class _Open:
    def __init__(self, request: PermissionRequest, options: Sequence[PermissionOption], shown_at: float) -> None:
        self.request = request
        self.options = options
        self.shown_at = shown_at
        self.picked: asyncio.Future[tuple[PermissionOption | None, str, str]] = asyncio.get_running_loop().create_future()

    def find(self, *kinds: str) -> PermissionOption | None:
        return next((option for kind in kinds for option in self.options if option.kind == kind), None)


class Permissions:
    """`changed` is called whenever there is one more or one less."""

    def __init__(self, run_id: str, tell: Tell, transcript: Transcript, changed: Callable[[], None]) -> None:
        self._run_id = run_id
        self._tell = tell
        self._transcript = transcript
        self._changed = changed
        self._open: list[_Open] = []
        self._count = 0

    @property
    def waiting_for(self) -> str:
        return self._open[0].request.description if self._open else ""

    def tell_again(self) -> list[wire.Event]:
        """Of all that are open, for a wrapper that has just come."""
        return [wire.Asked(each.request) for each in self._open]

    # --- what the agent asks ---------------------------------------------------------------------------------------------

    async def ask(self, call: Call, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
        """Returns when somebody has decided, or the turn was cancelled."""
        self._count += 1
        asked = _Open(self._describe(call, options), options, _now())
        self._open.append(asked)
        self._tell(wire.Asked(asked.request))
        self._show(asked)
        self._changed()
        try:
            option, by, reason = await asked.picked
        finally:
            self._open.remove(asked)
            self._changed()
        is_allowed = option is not None and option.kind in _ALLOWING
        resolution = Resolution.GONE if option is None and not by else Resolution.ALLOWED if is_allowed else Resolution.DENIED
        self._tell(wire.Resolved(asked.request.id, resolution, by))
        said = "cancelled" if option is None else clean(option.name)
        self._transcript.say(f"  → {said}{f' ({clean(reason)})' if reason else ''}", Look.ASKED)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    def _describe(self, call: Call, options: Sequence[PermissionOption]) -> PermissionRequest:
        """Only the agent's own words, whole, are exact: a title is written for people, and may leave something out."""
        command, path = call.command, call.path if not call.command else ""
        subject = command or path
        title = " ".join(call.title.split()) or call.tool
        return PermissionRequest(
            id=f"acp-{self._run_id}-{self._count}",
            description=cut(title if not subject or subject in title else f"{title}: {subject}"),
            tool=call.tool,
            command=cut(command) or None,
            file_path=cut(path) or None,
            options=tuple(map(_show_option, options)),
            wider_options=tuple(_show_option(option) for option in options if option.kind == _ALWAYS),
            can_allow=any(option.kind == _ONCE for option in options),
            is_exact=bool(command) and cut(command) == command,
        )

    def _show(self, asked: _Open) -> None:
        lines = [f"? {asked.request.description}"]
        lines += [f"  {number}. {clean(option.name)}" for number, option in enumerate(asked.options, 1)]
        lines.append("  Type its number; or answer from elsewhere: agent-relay permissions")
        self._transcript.say("\n".join(lines), Look.ASKED)

    # --- what people say -------------------------------------------------------------------------------------------------

    def answer(self, request_id: str, decision: Decision) -> None:
        """Raises NotOpen when somebody was faster, and DoorError for what only a person at the terminal can decide."""
        asked = next((each for each in self._open if each.request.id == request_id and not each.picked.done()), None)
        if asked is None:
            raise NotOpen(LATE)
        if decision.option:
            wider = [each for each in asked.options if each.kind == _ALWAYS]
            option = next((each for each in wider if _show_option(each) == decision.option), None)
            if option is None or not decision.is_allowed:
                raise DoorError("It offers no such option; pick one at its terminal.")
        else:
            option = asked.find(_ONCE) if decision.is_allowed else asked.find(_NO, _NEVER)
        if decision.is_allowed and option is None:
            raise DoorError("It offers nothing that allows this once; pick one of its options at its terminal.")
        asked.picked.set_result((option, DOOR, decision.reason or (f"by {decision.by}" if decision.by else "")))

    def pick(self, line: str, typed_since: float) -> bool:
        """Whether this line, typed at the terminal, was an answer. One that was begun before the question was shown is none."""
        asked = next((each for each in self._open if not each.picked.done()), None)
        if asked is None or typed_since < asked.shown_at or not line.strip().isdigit():
            return False
        number = int(line.strip())
        if not 1 <= number <= len(asked.options):
            self._transcript.say(f"Type a number from 1 to {len(asked.options)}.", Look.NOTE)
            return True
        asked.picked.set_result((asked.options[number - 1], PERSON, ""))
        return True

    def cancel_all(self) -> None:
        """The turn is cancelled: the protocol wants every open question answered so."""
        for asked in self._open:
            if not asked.picked.done():
                asked.picked.set_result((None, "", ""))


def _show_option(option: PermissionOption) -> str:
    return " ".join(cut(f"{option.name} [{option.option_id[:_MAX_ID]}]").split())


def _now() -> float:
    return asyncio.get_running_loop().time()
