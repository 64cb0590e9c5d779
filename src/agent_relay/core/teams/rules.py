"""The rules of the team that the owner confirmed: kept as a document, and held against messages, starts and approvals.

Rules are for agents. The owner is bound by none, and everybody may write to the owner. While there are no rules, nothing of this
is looked at when a message passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from agent_relay.core.context import Context
from agent_relay.core.rights import ADMIN, Rights
from agent_relay.core.teams.access import Access
from agent_relay.core.teams.shadows import Shadows
from agent_relay.events import types as t
from agent_relay.protocol.access_rules import APPROVE, MAX_RULES, SEND, SPAWN, TOPIC_MARK, AccessRule, describe_rule
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import CHANNEL_MARK, fold_name, spare_names
from agent_relay.protocol.shadows import MAX_SHADOWINGS, Shadowing

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.ports.callers import Caller
    from agent_relay.protocol import envelope

DOCUMENT = "team"
COMMANDS = frozenset({"set_team"})
_EXPLAINED = {
    SEND: "may not write to", SPAWN: "may not start", APPROVE: "may not answer requests of",
}  # fmt: skip

Keep = Callable[[str, bytes, Callable[[], None]], None]  # the document, its content, and what to do once it is durable


class _Team(Struct, frozen=True):
    sha256: str = ""  # of the file that the owner confirmed
    rules: tuple[AccessRule, ...] = ()
    shadows: tuple[Shadowing, ...] = ()


class TeamRules:
    """`found`: the documents of the store. A team that cannot be read closes nothing; the log says so."""

    def __init__(self, context: Context, rights: Rights, shadows: Shadows, keep: Keep, found: Mapping[str, bytes]) -> None:
        self._context = context
        self._rights = rights
        self._shadows = shadows
        self.on_set: list[Callable[[], None]] = []  # called once another team is in force
        self._keep = keep
        self._owner = {fold_name(name) for name in spare_names(context.limits.owner)} if context.limits.owner else set()
        self.refused = 0  # since this daemon started
        self.access: Access | None = None  # None: there are no rules
        self._team = _Team()
        try:
            self._take(msgspec.json.decode(found.get(DOCUMENT) or b"{}", type=_Team))
        except msgspec.MsgspecError as error:
            context.log.note("team_unreadable", error=str(error))

    def _take(self, team: _Team) -> None:
        self._team = team
        self.access = Access(team.rules) if team.rules else None
        self._shadows.take_team(team.shadows)

    def describe(self) -> dict[str, Any]:
        """For `status` and lists; never a word of what was refused."""
        rules = [describe_rule(rule) for rule in self._team.rules]
        return {"sha256": self._team.sha256, "rules": rules, "refused": self.refused}

    # --- the owner's word -------------------------------------------------------------------------------------------------

    def receive(self, peer: Peer, frame: envelope.Control) -> None:
        """By whoever may change how the relay is set up; in a cluster, at the seat."""
        asked = frame.payload
        try:
            self._rights.check_on(self._rights.caller_of(peer), ADMIN, self._context.host)
            rules, shadows = asked.rules or [], asked.shadows or []
            if len(shadows) > MAX_SHADOWINGS:
                raise RelayError(
                    ErrorCode.INVALID_FORMAT, f"`payload.shadows` has {len(shadows)} entries; at most {MAX_SHADOWINGS} may be.",
                    field="payload.shadows",
                )  # fmt: skip
            if len(rules) > MAX_RULES:
                raise RelayError(
                    ErrorCode.INVALID_FORMAT, f"`payload.rules` has {len(rules)} rules; at most {MAX_RULES} are allowed.",
                    field="payload.rules",
                )  # fmt: skip
        except RelayError as error:
            peer.say_error(error, frame.id)
            return
        team = _Team(asked.id or "", tuple(rules), tuple(shadows))

        def kept() -> None:
            self._take(team)
            self._context.log.note("team_set", sha256=team.sha256, rules=len(team.rules), shadows=len(team.shadows))
            for changed in self.on_set:
                changed()
            peer.say("ACK", {"ack_id": frame.id, "stage": "controlled"})

        self._keep(DOCUMENT, msgspec.json.encode(team) if team != _Team() else b"", kept)

    # --- holding to it ----------------------------------------------------------------------------------------------------

    def check_send(self, sender: Agent, recipients: Iterable[Agent], target: str, topic: str) -> None:
        """Raises RelayError. A channel and a topic are targets of their own: whoever listens there hears all who may write there.
        `*` reaches everybody, so the sender needs to be free to write to each."""
        if sender.key in self._owner:
            return
        if topic:
            self._check(SEND, sender, TOPIC_MARK + topic)
        if target[:1] == CHANNEL_MARK:
            self._check(SEND, sender, target)
        elif target:  # "": a topic alone
            for agent in recipients:
                if agent.key not in self._owner:
                    self._check(SEND, sender, agent.name)

    def check_caller(self, action: str, caller: Caller, target: str) -> None:
        """A start of that agent, or an answer for it; raises RelayError. People may."""
        if self.access is not None and caller.agent is not None:
            self._check(action, caller.agent, target)

    def _check(self, action: str, subject: Agent | str, target: str) -> None:
        name = subject if isinstance(subject, str) else subject.name
        rule = self.access.find_refusal(action, name, target) if self.access is not None else None
        if rule is None:
            return
        self.refused += 1
        shown = describe_rule(rule)
        self._context.log.note("rule_refused", agent=name, action=action, to=target, rule=shown)
        if self._context.events is not None:
            session_id = "" if isinstance(subject, str) else subject.session_id
            event = t.AccessDenied(action=rule.action, to=target, rule=shown)
            self._context.events.publish(event, agent=name, session_id=session_id, at_ms=self._context.wall_ms)
        why = f" {rule.reason}" if rule.reason else ""
        raise RelayError(
            ErrorCode.PERMISSION_DENIED, f"{name} {_EXPLAINED[action]} {target}: the team's rule `{shown}` forbids it.{why}",
            reason="team_rule", rule=shown, action=action, agent=name, to=target,
        )  # fmt: skip
