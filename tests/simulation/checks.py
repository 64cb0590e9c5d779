"""The promise, watched: nothing acknowledged is lost, nothing is doubled, order holds, every SEND is answered once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulation.client import Client
    from tests.simulation.parts import Link
    from tests.simulation.world import World


class Broken(AssertionError):
    """The promise was broken."""


class Check:
    def __init__(self, world: World) -> None:
        self.world = world
        self.deliveries: dict[tuple[str, str], dict[str, Any]] = {}  # (recipient, message id) → what is known
        self.last_seq: dict[tuple[str, str, str], int] = {}  # (recipient, topic, sender)
        self.last_count: dict[tuple[str, str, str], int] = {}
        self.last_broadcast: dict[str, str] = {}
        self.message_of: dict[str, str] = {}  # client id → message id
        self.over: set[tuple[str, str]] = set()  # (recipient, message id) whose sender was told that it is over
        self.receipts: Counter[tuple[str, str]] = Counter()  # (recipient, message id) → how often its sender was told `delivered`
        self.asked: Counter[str] = Counter()  # client id → how often the daemon heard that SEND
        self.nacked: set[str] = set()  # refused; if the refusal got lost, the client sends it again, after later ones
        self.gaps: list[tuple[str, str, str, int, int]] = []

    def require(self, condition: object, why: str) -> None:
        if not condition:
            raise Broken(why)

    # --- the daemon speaks ----------------------------------------------------------------------------------------------

    def daemon_said(self, link: Link, said: dict[str, Any]) -> None:
        payload = said["payload"]
        match said["type"]:
            case "DELIVER":
                self._daemon_delivers(link, said)
            case "ACK" if payload.get("stage") == "stored":
                self._answered(link, payload["ack_id"])
                known = self.message_of.setdefault(payload["ack_id"], payload["message_id"])
                self.require(known == payload["message_id"], f"{payload['ack_id']} became two messages")
            case "NACK" if "message_id" in payload:
                key = (payload["to"], payload["message_id"])
                self.require(key not in self.receipts, f"{key}: told {payload['code']} after `delivered`")
                self.over.add(key)
            case "NACK":
                self._answered(link, payload["nack_id"])
                self.nacked.add(payload["nack_id"])
            case "ACK" if payload.get("stage") == "delivered":
                self._told_delivered((payload["by"], payload["message_id"]), payload["ack_id"])

    def _told_delivered(self, key: tuple[str, str], client_id: str) -> None:
        known = self.deliveries.get(key)
        self.require(known is not None and known["acked"], f"told delivered, but {key[0]} acknowledged nothing")
        self.require(key not in self.over, f"{key}: told `delivered` after it was over")
        self.receipts[key] += 1
        asked = self.asked[client_id]
        self.require(self.receipts[key] <= asked, f"{key}: told `delivered` {self.receipts[key]} times, asked {asked} times")

    def died(self, recipient: str, message_id: str) -> None:
        """The daemon gave a message up: it must not come again, and it must be among the dead letters in the store."""
        self.require((recipient, message_id) in self.world.letters, f"{message_id} to {recipient} is dead and no dead letter")
        self.require((recipient, message_id) not in self.receipts, f"{message_id} to {recipient} died after `delivered`")
        self.over.add((recipient, message_id))

    def _answered(self, link: Link, client_id: str) -> None:
        link.answered[client_id] = link.answered.get(client_id, 0) + 1
        asked = link.asked.get(client_id, 0)
        self.require(link.answered[client_id] <= asked, f"{client_id} was answered more often than it was asked")

    def _daemon_delivers(self, link: Link, said: dict[str, Any]) -> None:
        recipient, delivery = link.client.name, said["delivery"]
        key = (recipient, delivery["message_id"])
        self.require(key not in self.over, f"{key} is delivered after its sender was told that it is over")
        known = self.deliveries.get(key)
        if known is None:
            return
        self.require(known["id"] == said["id"], f"{key} changed its delivery id")
        self.require(known["seq"] == delivery["seq"], f"{key} changed its number")
        if known["incarnation"] == self.world.incarnation:
            self.require(delivery["attempt"] > known["attempt"], f"{key}: attempt {delivery['attempt']} after {known['attempt']}")
            self.require(known["ack_heard_in"] != self.world.incarnation, f"{key} came again after its ACK was heard")
        heard_at = known["ack_heard_at"]
        self.require(
            heard_at is None or heard_at >= self.world.all_durable_at, f"{key} came again although its ACK was in the store"
        )
        known["attempt"] = delivery["attempt"]
        known["incarnation"] = self.world.incarnation

    def crashed(self) -> None:
        """What was heard and not yet in the store may be asked for again."""
        for known in self.deliveries.values():
            if known["ack_heard_at"] is not None and known["ack_heard_at"] >= self.world.all_durable_at:
                known["ack_heard_at"] = known["ack_heard_in"] = None

    # --- the client hears -------------------------------------------------------------------------------------------------

    def client_got(self, client: Client, frame: dict[str, Any]) -> None:
        delivery = frame["delivery"]
        key = (client.name, delivery["message_id"])
        if key in self.deliveries:
            return
        self.deliveries[key] = {
            "id": frame["id"], "seq": delivery["seq"], "attempt": delivery["attempt"], "acked": False, "ack_heard_in": None,
            "ack_heard_at": None, "incarnation": self.world.incarnation, "stream": (frame.get("topic", ""), frame["from"]),
        }  # fmt: skip
        stream = (client.name, frame.get("topic", ""), frame["from"])
        last, seq = self.last_seq.get(stream, 0), delivery["seq"]
        if seq != last + 1:
            declared = delivery.get("prev_seq")
            self.require(seq > last, f"{stream}: {seq} came for the first time after {last}")
            self.require(
                declared is not None and declared <= last, f"{stream}: {last} → {seq} without a declared gap ({declared})"
            )
            self.gaps.append((*stream, last, seq))
        self.last_seq[stream] = seq
        sender, count = frame["payload"]["body"].split(":")
        self.require(sender == frame["from"], "the sender is not the sender")
        if f"{sender}-{count}" not in self.nacked:
            self.require(int(count) > self.last_count.get(stream, 0), f"{stream}: message {count} overtook")
            self.last_count[stream] = int(count)
        if frame["to"] == "*":
            before = self.last_broadcast.get(client.name, "")
            self.require(delivery["message_id"] > before, f"{client.name}: broadcasts changed places")
            self.last_broadcast[client.name] = delivery["message_id"]

    def client_told_stored(self, client: Client, receipt: dict[str, Any]) -> None:
        self.world.must_arrive.setdefault(receipt["ack_id"], (client.name, receipt["message_id"]))

    def will_acknowledge(self, client: Client, deliver: dict[str, Any]) -> None:
        self.deliveries[(client.name, deliver["delivery"]["message_id"])]["acked"] = True

    def will_refuse(self, client: Client, deliver: dict[str, Any]) -> None:
        self.deliveries[(client.name, deliver["delivery"]["message_id"])]["refused"] = True

    def daemon_hears(self, link: Link, frame: dict[str, Any]) -> None:
        payload = frame["payload"]
        match frame["type"]:
            case "SEND":
                link.asked[frame["id"]] = link.asked.get(frame["id"], 0) + 1
                self.asked[frame["id"]] += 1
            case "RESUME":
                for point in payload["streams"]:
                    self._resumed(link.client.name, point["topic"], point["peer"], point["last_seq"])
            case "ACK":
                for (recipient, _), known in self.deliveries.items():
                    if recipient == link.client.name and known["id"] == payload["ack_id"] and known["ack_heard_in"] is None:
                        known["ack_heard_in"] = self.world.incarnation
                        known["ack_heard_at"] = self.world.steady

    def come_to(self, client: Client) -> dict[tuple[str, str], int]:
        """The last number the client got in each of its streams."""
        return {(topic, sender): seq for (name, topic, sender), seq in self.last_seq.items() if name == client.name}

    def _resumed(self, recipient: str, topic: str, sender: str, last_seq: int) -> None:
        for (name, _), known in self.deliveries.items():
            if name == recipient and known["stream"] == (topic, sender) and known["seq"] <= last_seq:
                known["acked"] = True

    # --- after every step ---------------------------------------------------------------------------------------------------

    def state(self) -> None:
        limits = self.world.limits
        for agent in self.world.relay.registry.agents.values():
            box = agent.mailbox
            most = limits.queue_capacity + limits.max_inflight
            # After a crash, what was settled and not yet written down waits once more, beyond what was ever let in at once.
            self.require(
                self.world.incarnation > 1 or box.waiting <= most, f"{box.waiting} wait for {agent.name}, at most {most} may"
            )
            self.require(box.waiting == sum(len(lane) for lane in box.lanes.values()), "the queue has lost count")
            if agent.peer is not None:
                self.require(len(box.inflight) <= agent.peer.window, f"{len(box.inflight)} on the wire to {agent.name}")
            if agent.loop is not None and agent.loop.barrier is not None and agent.peer is not None and agent.peer.active:
                self.require(box.waiting, f"the queue of {agent.name} is closed, and nothing is in it")
                self.require(box.first().message.hop is agent.loop.barrier, f"{agent.name} waits for what is not the first")
            self.require(box.reserved >= 0 and box.held_bytes >= 0, "negative reservation")
            for stream in agent.streams.values():
                self.require(stream.done_seq <= stream.last_seq, "done beyond the last number")

    # --- when everything is calm again ----------------------------------------------------------------------------------------

    def end(self) -> None:
        for client in self.world.clients:
            self.require(not client.unanswered, f"{client.name} was never answered about {list(client.unanswered)[:3]}")
            link = client.link
            assert link is not None
            self.require(link.answered == link.asked, f"{client.name}: asked and answered differ")
        for client_id, (sender, message_id) in self.world.must_arrive.items():
            for recipient, _ in self.world.recipients[message_id]:
                key = (recipient, message_id)
                self.require(
                    key in self.deliveries or key in self.world.dead or key in self.over,
                    f"{client_id} of {sender} was accepted as {message_id} and never reached {recipient}",
                )
        for recipient, topic, sender, last, seq in self.gaps:
            for missing in range(last + 1, seq):
                key = self.world.message_with(recipient, topic, sender, missing)
                self.require(key in self.world.dead, f"{sender} → {recipient}: number {missing} is missing and not dead")
