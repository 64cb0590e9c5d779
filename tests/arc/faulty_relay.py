"""The small relay with further faults, a short override each: for every rule of the suite there is a relay that breaks it."""

from __future__ import annotations

import json
from typing import Any

from tests.arc.small_relay import MAX_BYTES, Receive, Refused, Scope, Send, SmallRelay, is_addressed


class FaultyRelay(SmallRelay):
    """`fault` is one of those of `test_conformance.py`."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault, extensions=("persistence", "presence") if fault == "no-presence" else ("persistence",))
        self._fault = fault
        self._held: dict[str, Any] | None = None
        self._heard: set[str] = set()  # who was sent a message by another
        self._was_here: set[str] = set()

    # --- registering ------------------------------------------------------------------------------------------------

    def _register(self, body: bytes) -> dict[str, str]:
        said = json.loads(body or b"{}")
        if self._fault == "relay-for-all" and said.get("agent_id") == "relay":
            return {"agent_id": "relay", "token": self._new_token("relay")}
        found = super()._register(body)
        if self._fault == "another-id" or (self._fault == "picks-nonsense" and "agent_id" not in said):
            found["agent_id"] = "-Nobody-"
        return found

    def _new_token(self, agent: str) -> str:
        if self._fault == "the-same-again" and agent in self.agents.values():
            return next(token for token, known in self.agents.items() if known == agent)
        return super()._new_token(agent)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Any]:
        known = dict(self.agents)
        answer = await super()._answer(scope, receive)
        if self._fault == "keeps-the-revoked":
            self.agents = known | self.agents
        return answer

    def _agent_of(self, scope: Scope) -> str:
        headers = [header for header in scope["headers"] if header[0].lower() != b"authorization"]
        if self._fault == "no-header-token" and scope["type"] == "websocket":
            return super()._agent_of({**scope, "headers": headers})
        if self._fault == "query-wins" and b"token=" in scope.get("query_string", b""):
            return super()._agent_of({**scope, "headers": headers})
        try:
            return super()._agent_of(scope)
        except Refused:
            if self._fault == "guests" and len(headers) == len(scope["headers"]):
                return "guest-1"
            raise

    # --- the socket -------------------------------------------------------------------------------------------------

    async def _talk(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super()._talk(scope, receive, send)
        if self._fault == "burns-tokens":
            self.agents = {token: agent for token, agent in self.agents.items() if agent not in self._was_here}
        if self._fault == "forgets-subscriptions":
            self.subscriptions.clear()

    def _welcome(self, agent: str) -> dict[str, Any]:
        found = super()._welcome(agent)
        self._was_here.add(agent)
        if self._fault == "bare-welcome":
            del found["limits"]
        if self._fault == "no-rate-limit":
            found["limits"]["rate_limit"] = "10/min"
        return found

    async def _end(self, agent: str, code: int = 1011) -> None:
        await self.peers[agent]({"type": "websocket.close", "code": code, "reason": ""})

    async def _on_frame(self, agent: str, event: dict[str, Any]) -> None:
        text = event.get("text")
        size = len(text or "")
        if (self._fault == "ends-on-large" and size > MAX_BYTES) or (self._fault == "smaller-limit" and size > MAX_BYTES // 2):
            await self._end(agent, 1009)
        elif self._fault in {"ends-on-nonsense", "ends-all-on-nonsense"} and not _is_message(text):
            for peer in [agent] if self._fault == "ends-on-nonsense" else list(self.peers):
                await self._end(peer)
        else:
            await super()._on_frame(agent, event)

    # --- routing ----------------------------------------------------------------------------------------------------

    async def _route(self, sender: str, frame: dict[str, Any]) -> None:
        if self._fault == "payloads-as-text":
            frame = {**frame, "payload": str(frame["payload"])}
        is_unknown = not {*frame["to"]} & {"*", *self.ever}
        if (self._fault, is_unknown) == ("ends-on-unknown", True) or (self._fault == "one-way" and sender in self._heard):
            await self._end(sender)
        elif self._fault == "turns-around" and self._held is None:
            self._held = frame
        else:
            await super()._route(sender, frame)
            if self._held is not None:
                held, self._held = self._held, None
                await super()._route(sender, held)
        self._heard |= {*frame["to"]} - {sender}

    def _targets(self, sender: str, to: list[str]) -> list[str]:
        targets = super()._targets(sender, to)
        if self._fault == "not-to-the-sender":
            targets = [target for target in targets if target != sender]
        if self._fault == "shows-what-is-written-to-others":
            targets += [who for who, whom in self.subscriptions.items() if whom & {*to} and who not in targets]
        return targets

    # --- what is for the relay itself -------------------------------------------------------------------------------

    def _find(self, agent: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        if self._fault == "finds-everything":
            arguments = {name: value for name, value in arguments.items() if name != "query"}
        if self._fault == "replays-everything":
            arguments = {name: value for name, value in arguments.items() if name != "since_message_id"}
        return super()._find(agent, arguments)

    async def _say(self, agent: str, type_: str, payload: Any, ref: Any = None, **more: Any) -> None:
        if self._fault == "other-words" and type_ == "error":
            payload, more = {**payload, "code": "bad"}, {**more, "error": "bad"}
        if (self._fault, type_) in {("flat-errors", "error"), ("flat-welcome", "welcome")}:
            payload = None
        if self._fault == "no-refs":
            ref = None
        if self._fault == "pong-from-nobody" and type_ == "pong":
            await self._deliver(agent, {"from": "nobody", "to": [agent], "type": "pong"})
            return
        if self._fault == "subscribes-to-nothing" and type_ == "subscribed":
            payload = {"agents": [], "count": 0}
        await super()._say(agent, type_, payload, ref, **more)


def _is_message(text: str | None) -> bool:
    try:
        said = json.loads(text or "")
    except ValueError:
        return False
    return isinstance(said, dict) and is_addressed(said)
