"""SEND: validated, de-duplicated, routed, given room, stored; then answered, and not before.

Every SEND with a sound envelope is answered exactly once, with ACK or NACK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Raw
from msgspec.structs import replace

from agent_relay.core.backpressure import Backpressure
from agent_relay.core.commit import Committer
from agent_relay.core.context import Context
from agent_relay.core.correlation import Correlations
from agent_relay.core.delivery import Ledger
from agent_relay.core.journal import Journal
from agent_relay.core.messages import Message, MessageExtras, make_message
from agent_relay.core.rate import check_rate
from agent_relay.core.registry import Registry
from agent_relay.core.repetitions import Repetitions
from agent_relay.core.router import Route, Router
from agent_relay.core.send_receipts import SendReceipts, not_stored
from agent_relay.core.teams.rules import TeamRules
from agent_relay.core.teams.shadows import Shadows
from agent_relay.ports.relay import ReadSend, Told
from agent_relay.ports.store import MemberRow, MessageRow, MessageStore, Page, StoreError
from agent_relay.protocol.checksums import check_checksum
from agent_relay.protocol.decode import DEFAULT_META, check_depth, convert_fields, decode_meta, decode_send, is_object
from agent_relay.protocol.encode import encode_json, encode_tail, encode_tail_head, keep_shadows, read_tail
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import BROADCAST, CHANNEL_MARK
from agent_relay.protocol.payloads import NOTHING, SendMeta

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope, payloads


class Sending:
    def __init__(
        self, context: Context, registry: Registry, store: MessageStore, journal: Journal, ledger: Ledger,
        correlations: Correlations, backpressure: Backpressure, rules: TeamRules, shadows: Shadows, *, keeps_registered: bool,
    ) -> None:  # fmt: skip
        self._context = context
        self._registry = registry
        self._router = Router(registry)
        self._store = store
        self._correlations = correlations
        self._backpressure = backpressure
        self._rules = rules
        self._shadows = shadows
        self.receipts = SendReceipts(context, journal, ledger, correlations, backpressure)
        self.committer = Committer(context, store, journal, self.receipts.stored, self.receipts.failed)
        self.repetitions = Repetitions(context, store, self.receipts, correlations, self.committer)
        self._by_name = registry.by_name
        self._keeps_registered = keeps_registered  # messages wait for registered agents that are not connected
        self._ttl_ms = context.limits.message_ttl_ms

    # --- accepting ----------------------------------------------------------------------------------------------------

    def receive(self, peer: Peer, sender: Agent, frame: envelope.Send) -> None:
        try:
            self._read(peer, sender, frame)
        except RelayError as error:
            if not is_object(frame.payload):  # that is the envelope's fault, and answered as such
                peer.say_error(RelayError(ErrorCode.INVALID_FORMAT, "`payload` must be an object.", field="payload"), frame.id)
                return
            self.receipts.refused += 1
            peer.say_nack(error, frame.id)

    def refuse_new(self, peer: Peer, sender: Agent, client_id: str, why: RelayError) -> None:
        """Nothing new is accepted. One that was said before is answered as it was: it is stored, or will be if it can."""
        if not (peer.dedups and self.repetitions.answer(peer, sender, client_id, DEFAULT_META)):
            peer.say_nack(why, client_id)

    def receive_plain(self, peer: Peer, sender: Agent, sends: list[ReadSend]) -> None:
        """Messages in a row that were read and found sound. Nearly all are new, and to one agent with room for them: those are
        accepted right here, with what they share looked up once."""
        has_more = peer.allowance is not None or sender.loop is not None or self._rules.access is not None or self._shadows.all
        if has_more or not self._keeps_registered:
            for send in sends:
                self._receive_read(peer, sender, send)
            return
        by_name, name, add = self._by_name, sender.name, self.committer.messages.append
        pending, younger, older = sender.pending, sender.seen.younger, sender.seen.older
        may_repeat = peer.dedups
        is_tight = self._backpressure.is_tight
        head, now = encode_tail_head(name), self._context.steady_ms
        expires = now + self._ttl_ms
        for send in sends:
            client_id, to, payload, body = send
            agent = by_name.get(to) if isinstance(to, str) else None
            if (
                agent is None
                or agent.hidden
                or (may_repeat and (client_id in pending or client_id in younger or client_id in older))
            ):
                self._receive_read(peer, sender, send)
                continue
            tail = b"".join((head, payload, b"}"))
            size, box = len(tail), agent.mailbox
            if is_tight(box, size):
                self._receive_read(peer, sender, send)
                continue
            box.reserved += 1
            box.held_bytes += size
            message = make_message(sender, [agent], client_id, agent.name, tail, now, expires, peer, body)
            if may_repeat:
                pending[client_id] = message
            add(message)

    def receive_asking(self, peer: Peer, sender: Agent, send: ReadSend, told: Told) -> None:
        """One that was read and found sound; `told` is called in place of any answer."""
        client_id, to, payload, body = send
        try:
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            self._accept(peer, sender, client_id, to, "", payload, NOTHING, "message", None, body, DEFAULT_META, told)
        except RelayError as error:
            self.receipts.refused += 1
            told(error)

    def receive_inside(
        self, peer: Peer, sender: Agent, client_id: str, to: str | list[str] | None, topic: str, payload: dict[str, Any],
        meta: dict[str, Any], told: Told,
    ) -> None:  # fmt: skip
        """One from inside the process, which was never a frame: `told` is called where others are sent ACK `stored` or NACK."""
        try:
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            raw, raw_meta, body = encode_json(payload), encode_json(meta) if meta else b"", payload["body"]
            check_depth(raw)
            known = convert_fields(meta, SendMeta, "payload_meta") if meta else DEFAULT_META
            if known is not DEFAULT_META:
                self._check_meta(sender, client_id, body, known)
            self._accept(
                peer, sender, client_id, to, topic, raw, raw_meta, payload["kind"], payload.get("thread"), body, known, told
            )
        except RelayError as error:
            self.receipts.refused += 1
            told(error)

    def _receive_read(self, peer: Peer, sender: Agent, send: ReadSend) -> None:
        client_id, to, payload, body = send
        try:
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            self._accept(peer, sender, client_id, to, "", payload, NOTHING, "message", None, body, DEFAULT_META)
        except RelayError as error:
            self.receipts.refused += 1
            peer.say_nack(error, client_id)

    def _read(self, peer: Peer, sender: Agent, frame: envelope.Send) -> None:
        if peer.allowance is not None:
            check_rate(self._context, peer.allowance)
        send = decode_send(frame.payload)
        meta = decode_meta(frame.payload_meta) if len(frame.payload_meta) else DEFAULT_META
        if meta is not DEFAULT_META:
            self._check_meta(sender, frame.id, send.body, meta)
        self._accept(
            peer, sender, frame.id, frame.to, frame.topic or "", frame.payload, frame.payload_meta, send.kind, send.thread,
            send.body, meta,
        )  # fmt: skip

    def _accept(
        self, peer: Peer, sender: Agent, client_id: str, to: str | list[str] | None, topic: str, payload: Raw | bytes,
        raw_meta: Raw | bytes, kind: str, thread: str | None, body: str, meta: payloads.SendMeta, told: Told | None = None,
    ) -> None:  # fmt: skip
        if peer.dedups and self.repetitions.answer(peer, sender, client_id, meta):
            return
        name = sender.name
        tail = encode_tail(name, topic, payload, raw_meta)
        tail_bytes = len(tail)
        skipped: tuple[str, ...] = ()
        skips_unknown = peer.traits.skips_unknown
        recipients, target, shown, shared = self._route(peer, sender, to, topic)
        for agent in recipients:
            if self._backpressure.is_tight(agent.mailbox, tail_bytes):
                recipients, skipped = self._choose(peer, sender, recipients, tail, skip_full=shared or skips_unknown)
                if skipped and skips_unknown and told is None:  # it is sent no receipt that could name them
                    peer.say_nack(self._backpressure.full_error(self._router.find(skipped[0])), client_id)
                break
        copies = 0
        if self._shadows.all:
            listeners, full = self._find_shadows(sender, recipients, tail)
            copies, recipients, skipped = len(listeners), [*recipients, *listeners], skipped + full
            if listeners:
                tail = encode_tail(name, topic, payload, raw_meta, [agent.name for agent in listeners])
                tail_bytes = len(tail)
        for agent in recipients:
            box = agent.mailbox
            box.reserved += 1
            box.held_bytes += tail_bytes
        now = self._context.steady_ms
        message = make_message(
            sender, recipients, client_id, target, tail, now, now + (meta.ttl_ms or self._ttl_ms), peer, body,
            topic=topic, kind=kind, thread=thread, priority=meta.priority, skipped=skipped, shared=shared, to=shown,
            requires_ack=meta.requires_ack,
            extras=MessageExtras(meta.sync, meta.reply_to) if meta.sync is not None or meta.reply_to is not None else None,
        )  # fmt: skip
        message.copies = copies
        if told is not None:
            message.extras = message.extras or MessageExtras()
            message.extras.answer = lambda row: told(not_stored(row) if isinstance(row, StoreError) else row)
        if sender.loop is not None:
            message.hop = sender.loop.speak(sender)
        if peer.dedups:
            sender.pending[client_id] = message
        self.committer.messages.append(message)

    def _route(self, peer: Peer, sender: Agent, to: str | list[str] | None, topic: str) -> Route:
        """Raises RelayError where nobody can be meant."""
        skips_unknown = peer.traits.skips_unknown
        if skips_unknown:
            recipients, target, shown, shared = self._router.resolve_known(sender, to)
        else:
            recipients, target, shown, shared = self._router.resolve(sender, to, topic)
        if self._rules.access is not None:
            self._rules.check_send(sender, recipients, target, topic)
        if not self._keeps_registered:
            recipients = self._without_absent(recipients, is_refused=not skips_unknown and not shared)
        if target[:1] == CHANNEL_MARK:
            self._begin_history(target)
        return recipients, target, shown, shared

    def _without_absent(self, wanted: list[Agent], *, is_refused: bool) -> list[Agent]:
        """Those of them that nothing is kept for get nothing while they are not there."""
        absent = [agent for agent in wanted if agent.peer is None and agent.is_registered]
        if absent and is_refused:
            raise RelayError(
                ErrorCode.AGENT_OFFLINE, f"{absent[0].name} is offline, and nothing is kept for it.", to=absent[0].name
            )
        return [agent for agent in wanted if agent not in absent] if absent else wanted

    def _check_meta(self, sender: Agent, client_id: str, body: str, meta: payloads.SendMeta) -> None:
        if meta.checksum is not None:
            check_checksum(body, meta.checksum)
        if meta.sync is None or not meta.sync.blocking:
            return
        if meta.sync.correlationId is None:
            field = "payload_meta.sync.correlationId"
            raise RelayError(ErrorCode.INVALID_FORMAT, f"`{field}` is missing: a blocking message needs one.", field=field)
        self._correlations.check_unused(sender, client_id, meta.sync.correlationId)

    def _begin_history(self, channel: str) -> None:
        """The first message makes a channel outlive its members; that is stored with it."""
        found = self._registry.channel(channel)
        if found is not None and not found.has_history:
            found.has_history = True

            def settled(error: StoreError | None) -> None:
                if error is not None:
                    found.has_history = False  # the next message says it again

            self.committer.change(lambda batch: batch.members.append(MemberRow(channel, "")), settled)

    def _choose(
        self, peer: Peer, sender: Agent, wanted: list[Agent], tail: bytes, *, skip_full: bool
    ) -> tuple[list[Agent], tuple[str, ...]]:
        """Those of them that have room, and those passed over; raises if a full one cannot be. Warns where it gets tight."""
        backpressure = self._backpressure
        full: list[Agent] = []
        for agent in wanted:
            depth = backpressure.depth_with_one_more(agent, tail)
            if depth > backpressure.capacity:
                full.append(agent)
            if depth >= backpressure.warn_at:
                backpressure.warn(peer, sender, agent, min(depth, backpressure.capacity), accepted=depth <= backpressure.capacity)
        if not full:
            return wanted, ()
        if not skip_full:
            raise backpressure.full_error(full[0])
        return [agent for agent in wanted if agent not in full], tuple([agent.name for agent in full])

    def _find_shadows(self, sender: Agent, recipients: list[Agent], tail: bytes) -> tuple[list[Agent], tuple[str, ...]]:
        """Those who get a copy, and those whose queue is full: they get none, and are named as skipped."""
        found = self._shadows.find(sender, recipients)
        backpressure = self._backpressure
        full = [agent for agent in found if backpressure.depth_with_one_more(agent, tail) > backpressure.capacity]
        return [agent for agent in found if agent not in full], tuple([agent.name for agent in full])

    def send_again(
        self, peer: Peer, row: MessageRow, sender: Agent, recipient: Agent, answer: Callable[[MessageRow | StoreError], None]
    ) -> None:  # fmt: skip
        """A dead letter, once more: a new message with the old words, to the one recipient it did not reach. The ids of its
        sender are known."""
        client_id = f"again-{row.id}-{recipient.name}"  # a letter goes once, also where a crash hides that it went
        number = self.repetitions.find(sender, client_id)
        if number is not None:
            self._store.fetch([number], lambda page: answer(_first(page)))
            return
        recipients, _ = self._choose(peer, sender, [recipient], row.tail, skip_full=False)
        tail = keep_shadows(row.tail, ())  # they have their copy
        recipient.mailbox.reserve(tail)
        found = read_tail(tail)
        meta = decode_meta(Raw(encode_json(found["payload_meta"]))) if "payload_meta" in found else DEFAULT_META
        now = self._context.steady_ms
        message = sender.pending[client_id] = Message(
            replace(row, number=0, id="", client_id=client_id, queued=0, skipped=(), recipients=(), tail=tail), sender,
            recipients, shared=False, to=row.target if row.target[:1] in {"*", "#"} else None, requires_ack=meta.requires_ack,
            accepted=now,
            expires=now + (meta.ttl_ms or self._ttl_ms), open=1, peer=peer, body=str(found["payload"].get("body", "")),
            extras=MessageExtras(reply_to=meta.reply_to, answer=answer),
        )  # fmt: skip
        self.committer.messages.append(message)

    def check_rules(self, sender: Agent, recipients: Iterable[Agent]) -> None:
        """Raises RelayError where a team's rule keeps the sender from writing to one of them. For what is posted in its name."""
        if self._rules.access is not None:
            self._rules.check_send(sender, recipients, BROADCAST, "")

    def post(
        self, sender: Agent, recipients: list[Agent], payload: dict[str, Any], client_id: str, stored: Callable[[bool], None],
        spoken_by: Agent | None = None,
    ) -> None:  # fmt: skip
        """A message in somebody's name, once for each id; `stored` is told whether it is durable. For the loop guard it is
        `spoken_by` who speaks, by default the sender."""

        def recalled(error: StoreError | None) -> None:
            if error is None:
                self._post(sender, recipients, payload, client_id, stored, spoken_by or sender)
            else:
                stored(False)

        self.repetitions.recall(sender, recalled)

    def _post(
        self, sender: Agent, recipients: list[Agent], payload: dict[str, Any], client_id: str, stored: Callable[[bool], None],
        speaker: Agent,
    ) -> None:  # fmt: skip
        if client_id in sender.pending:
            return
        if self.repetitions.find(sender, client_id) is not None:
            stored(True)
            return
        raw = encode_json(payload)
        shadows, skipped = self._find_shadows(sender, recipients, raw) if self._shadows.all else ([], ())
        tail = encode_tail(sender.name, "", raw, b"", [agent.name for agent in shadows])
        everybody = [*recipients, *shadows]
        for recipient in everybody:
            recipient.mailbox.reserve(tail)
        now, target = self._context.steady_ms, ",".join(agent.name for agent in recipients)
        message = sender.pending[client_id] = make_message(
            sender, everybody, client_id, target, tail, now, now + self._ttl_ms, None, payload["body"],
            kind=payload.get("kind", "message"), skipped=skipped,
            extras=MessageExtras(answer=lambda row: stored(not isinstance(row, StoreError))),
        )  # fmt: skip
        message.copies = len(shadows)
        if speaker.loop is not None:
            message.hop = speaker.loop.speak(speaker)
        self.committer.messages.append(message)


def _first(page: Page | StoreError) -> MessageRow | StoreError:
    if isinstance(page, StoreError):
        return page
    return page.messages[0] if page.messages else StoreError("it is being removed")


def read_plain(frame: envelope.Send) -> ReadSend | None:
    """A SEND that says nothing but a message to somebody; None: it says more, or something that is wrong."""
    if frame.to is None or frame.topic is not None or len(frame.payload_meta):
        return None
    try:
        send = decode_send(frame.payload)
    except RelayError:  # whoever looks at it next finds out
        return None
    if send.kind != "message" or send.thread is not None:
        return None
    return frame.id, frame.to, frame.payload, send.body
