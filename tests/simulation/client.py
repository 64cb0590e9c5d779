"""A client that keeps to the contract, on a bad day: slow to acknowledge, repeating itself, reconnecting, sometimes refusing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.simulation.parts import Link
from tests.support.harness import OWNER_TOKEN

if TYPE_CHECKING:
    from tests.simulation.world import World


class Client:
    def __init__(self, world: World, name: str, window: int, *, wrapped: bool) -> None:
        self.world = world
        self.name = name
        self.window = window
        self.wrapped = wrapped  # the relay runs it, so it is guarded against loops
        self.link: Link | None = None
        self.token: str | None = None
        self.welcomed = False
        self.counter = 0
        self.unanswered: dict[str, dict[str, Any]] = {}
        self.accepted: dict[str, dict[str, Any]] = {}
        self.refused: set[str] = set()
        self.to_acknowledge: list[dict[str, Any]] = []
        self.old_answers: list[dict[str, Any]] = []
        self.frames = 0

    # --- out ------------------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        world = self.world
        self.link = link = Link(world, self)
        link.peer = world.relay.accepted(link, 1000)
        self.welcomed = False
        if self.token is not None and world.rng.random() < 0.5:
            self._resume(self.token)
            return
        hello: dict[str, Any] = {"agent": self.name, "version": 2, "capabilities": self._capabilities()}
        hello["session"] = {"owner_token": OWNER_TOKEN} | ({} if self.token is None else {"resume_token": self.token})
        self._say("HELLO", hello)

    def _resume(self, token: str) -> None:
        """With how far it has come in every stream, which acknowledges that much."""
        points = self.world.check.come_to(self)
        streams = [{"topic": topic, "peer": sender, "last_seq": seq} for (topic, sender), seq in points.items()]
        payload = {"agent": self.name, "version": 2, "resume_token": token, "streams": streams}
        self._say("RESUME", payload | {"capabilities": self._capabilities()})

    def _capabilities(self) -> dict[str, Any]:
        asked = {"ack": True, "resume": True, "max_inflight": self.window, "backpressure": True}
        return asked | ({"control": True} if self.wrapped else {})

    def report_input(self) -> None:
        """A person typed something."""
        self._say("AGENT_EVENT", {"type": "agent.input", "fields": {}})

    def _say(self, kind: str, payload: dict[str, Any], **fields: Any) -> dict[str, Any]:
        self.frames += 1
        frame = {"v": 2, "type": kind, "id": f"{self.name}-f{self.frames}", "ts": self.world.wall, "payload": payload} | fields
        assert self.link is not None
        self.link.to_daemon.append(json.dumps(frame).encode())
        return frame

    def send(self, to: Any, **meta: Any) -> None:
        self.counter += 1
        fields: dict[str, Any] = {"id": f"{self.name}-{self.counter}", "to": to}
        if meta:
            fields["payload_meta"] = meta
        frame = self._say("SEND", {"body": f"{self.name}:{self.counter}"}, **fields)
        self.unanswered[frame["id"]] = frame

    def repeat_an_old_one(self) -> None:
        """A SEND that was accepted, once more: nothing must be delivered twice."""
        if self.accepted:
            client_id = self.world.rng.choice(list(self.accepted))
            assert self.link is not None
            self.link.to_daemon.append(json.dumps(self.accepted[client_id]["frame"]).encode())

    def answer_one(self) -> None:
        rng = self.world.rng
        if not self.to_acknowledge:
            return
        place = 0 if rng.random() < 0.8 else rng.randrange(len(self.to_acknowledge))
        deliver = self.to_acknowledge.pop(place)
        roll = rng.random()
        if roll < 0.05:
            self._say("NACK", {"nack_id": deliver["id"], "code": "AGENT_BUSY", "retry_after_ms": rng.randrange(1, 500)})
        elif roll < 0.08:
            self.world.check.will_refuse(self, deliver)
            self._say("NACK", {"nack_id": deliver["id"], "code": "REJECTED"})
        else:
            self._acknowledge(deliver)
            self.old_answers.append(deliver)
            if self.wrapped and not self.world.is_calm and rng.random() < 0.7:
                self.send(deliver["from"])

    def _acknowledge(self, deliver: dict[str, Any]) -> None:
        self.world.check.will_acknowledge(self, deliver)
        self._say("ACK", {"ack_id": deliver["id"], "seq": deliver["delivery"]["seq"]})

    def acknowledge_again(self) -> None:
        if self.old_answers:
            self._acknowledge(self.world.rng.choice(self.old_answers))

    # --- in -------------------------------------------------------------------------------------------------------------

    def hear(self, frame: dict[str, Any]) -> None:
        payload = frame["payload"]
        match frame["type"]:
            case "WELCOME" | "SYNC":
                self.token = payload["resume_token"]
                self.welcomed = True
                self.to_acknowledge.clear()
                again, self.unanswered = list(self.unanswered.values()), {}
                for unanswered in again:
                    self.unanswered[unanswered["id"]] = unanswered
                    assert self.link is not None
                    self.link.to_daemon.append(json.dumps(unanswered).encode())
            case "DELIVER":
                self.world.check.client_got(self, frame)
                if frame["id"] not in {deliver["id"] for deliver in self.to_acknowledge}:
                    self.to_acknowledge.append(frame)
            case "ACK" if payload.get("stage") == "stored":
                sent = self.unanswered.pop(payload["ack_id"], None)
                if sent is not None:
                    self.accepted[payload["ack_id"]] = {"frame": sent, "receipt": payload}
                self.world.check.client_told_stored(self, payload)
            case "NACK" if "message_id" not in payload:
                self.unanswered.pop(payload["nack_id"], None)
                self.refused.add(payload["nack_id"])
            case "PING":
                self._say("PONG", {"nonce": payload["nonce"]})
            case "ERROR":
                if payload.get("fatal") and payload["code"] == "PERMISSION_DENIED":
                    reason = (payload.get("details") or {}).get("reason")
                    assert reason == "name_in_use", f"{self.name} was refused: {payload}"

    def lost(self) -> None:
        self.link = None
        self.welcomed = False
        self.to_acknowledge.clear()
        self.old_answers.clear()
