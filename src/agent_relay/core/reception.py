"""Reception of what clients say: frames read, put together where that is cheaper, and brought to the part that acts on them.

Messages in a row are accepted together, and acknowledgements in a row settled together: what they share is looked up once.
Everything else, such as a greeting, a malformed frame or the first word of a session, is heard one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_relay.core.agents import Agent
from agent_relay.core.context import Context
from agent_relay.core.delivery import Ledger
from agent_relay.core.frame_dispatch import FrameDispatch, stopping_error
from agent_relay.core.handshake import Handshake
from agent_relay.core.peer import PaceEvent, Peer
from agent_relay.core.sending import Sending, read_plain
from agent_relay.core.tokens import Tokens
from agent_relay.ports.relay import ReadSend, Told
from agent_relay.protocol.decode import BadFrame, decode_client_frame
from agent_relay.protocol.envelope import Ack, ClientFrame, Hello, Resume, Send
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.states import CloseReason, DaemonState

if TYPE_CHECKING:
    from agent_relay.protocol.payloads import AckPayload


class Reception:
    """`end` closes a connection."""

    def __init__(
        self, context: Context, tokens: Tokens, sending: Sending, ledger: Ledger, handshake: Handshake, frames: FrameDispatch,
        end: Callable[[Peer, CloseReason], None],
    ) -> None:  # fmt: skip
        self._context = context
        self._tokens = tokens
        self._sending = sending
        self._ledger = ledger
        self._handshake = handshake
        self._frames = frames
        self._end = end

    def received(self, peer: Peer, frames: list[bytes]) -> None:
        peer.last_heard = self._context.steady_ms
        peer.pinged = False
        plain: list[ReadSend] = []  # messages in a row are accepted together,
        acks: list[AckPayload] = []  # and acknowledgements in a row settled
        for data in frames:
            if not peer.fast:
                if peer.state is DaemonState.OPENING:
                    peer.held.append(data)
                    continue
                if peer.closed:
                    return
            try:
                frame = decode_client_frame(data)
            except BadFrame as bad:
                self._catch_up(peer, plain, acks)
                self._bad_frame(peer, bad)
                continue
            agent = peer.agent
            if not peer.fast or agent is None or frame.from_ is not None:
                self._catch_up(peer, plain, acks)
                self._hear(peer, frame)
            elif type(frame) is Ack:
                if plain:
                    self._catch_up(peer, plain, acks)
                acks.append(frame.payload)
            elif type(frame) is Send:
                if acks:
                    self._catch_up(peer, plain, acks)
                read = read_plain(frame)
                if read is not None:
                    plain.append(read)
                else:
                    self._catch_up(peer, plain, acks)
                    self._sending.receive(peer, agent, frame)
            else:
                self._catch_up(peer, plain, acks)
                self._frames.act(peer, agent, frame)
        self._catch_up(peer, plain, acks)

    def _catch_up(self, peer: Peer, plain: list[ReadSend], acks: list[AckPayload]) -> None:
        """Does what was said before something else first. Both lists are empty afterwards."""
        agent = peer.agent
        if agent is None:
            return
        if plain:
            self._sending.receive_plain(peer, agent, plain)
            plain.clear()
        if acks:
            self._ledger.acknowledge(agent, acks)
            acks.clear()

    # --- messages that were read before they came here ------------------------------------------------------------------------

    def sent(self, peer: Peer, sends: list[ReadSend]) -> None:
        agent = self._speaker(peer)
        if agent is not None and peer.fast:
            self._sending.receive_plain(peer, agent, sends)
        elif agent is not None:
            for client_id, *_ in sends:
                self._sending.refuse_new(peer, agent, client_id, stopping_error())

    def sent_asking(self, peer: Peer, send: ReadSend, told: Told) -> None:
        agent = self._speaker(peer)
        if agent is not None and peer.fast:
            self._sending.receive_asking(peer, agent, send, told)
        elif agent is not None:
            told(stopping_error())

    def sent_inside(
        self, peer: Peer, client_id: str, to: str | list[str] | None, topic: str, payload: dict[str, Any], meta: dict[str, Any],
        told: Told,
    ) -> None:  # fmt: skip
        """The same from a client in this process: the payload was never bytes, and says what it likes of itself in `meta`."""
        agent = self._speaker(peer)
        if agent is not None and peer.fast:
            self._sending.receive_inside(peer, agent, client_id, to, topic, payload, meta, told)
        elif agent is not None:
            told(stopping_error())

    def _speaker(self, peer: Peer) -> Agent | None:
        """The agent that is heard now; None where there is none, or not any more."""
        agent = peer.agent
        if agent is None or not peer.active:
            return None
        peer.last_heard = self._context.steady_ms
        if not peer.fast:
            self._confirm_session(peer, agent)
        return agent

    # --- one frame ------------------------------------------------------------------------------------------------------------

    def heard(self, peer: Peer, frame: ClientFrame) -> None:
        """One frame of a client in this process, which never was bytes."""
        if not peer.closed:
            peer.last_heard = self._context.steady_ms
            peer.pinged = False
            self._hear(peer, frame)

    def _hear(self, peer: Peer, frame: ClientFrame) -> None:
        """Whatever is not the next frame of an agent in the middle of its work."""
        peer.bad_frames = 0
        agent = peer.agent
        if not peer.active:
            self._greet(peer, frame)
        elif agent is None:
            self._frames.act_for_observer(peer, frame)
        else:
            self._confirm_session(peer, agent)
            if frame.from_ is not None and fold_name(frame.from_) != agent.key:
                sentence = f"This connection is {agent.name}; it cannot send as another."
                peer.say_nack(RelayError(ErrorCode.PERMISSION_DENIED, sentence, field="from"), frame.id)
            else:
                self._frames.act(peer, agent, frame)

    def _confirm_session(self, peer: Peer, agent: Agent) -> None:
        """It was heard, so its new token has arrived."""
        if not peer.confirmed:
            peer.confirmed = True
            self._tokens.confirm(agent)
        peer.set_pace(PaceEvent.HEARD)

    def _greet(self, peer: Peer, frame: ClientFrame) -> None:
        if self._context.stopping:
            self._refuse(peer, stopping_error(), frame.id)
        elif isinstance(frame, Hello):
            self._handshake.hello(peer, frame)
        elif isinstance(frame, Resume):
            self._handshake.resume(peer, frame)
        else:
            self._refuse(
                peer, RelayError(ErrorCode.INVALID_FORMAT, "The first frame must be HELLO or RESUME.", field="type"), frame.id
            )

    def _bad_frame(self, peer: Peer, bad: BadFrame) -> None:
        if not peer.active:
            error = bad if bad.code is ErrorCode.INVALID_FORMAT else RelayError(
                ErrorCode.INVALID_FORMAT, "The first frame must be HELLO or RESUME.", field="type"
            )  # fmt: skip
            self._refuse(peer, error, bad.request_id)
            return
        if bad.malformed:
            peer.bad_frames += 1
            peer.set_pace(PaceEvent.CHANGED)
            last = peer.bad_frames >= self._context.limits.bad_frames
            peer.say_error(bad, fatal=last)
            if last:
                self._end(peer, CloseReason.TOO_MANY_BAD_FRAMES)
            return
        peer.bad_frames = 0
        if bad.type == "SEND" and bad.request_id is not None and bad.details.get("field") not in {"v", "ts", "payload"}:
            peer.say_nack(bad, bad.request_id)
        else:
            peer.say_error(bad, bad.request_id)

    def _refuse(self, peer: Peer, error: RelayError, request_id: str | None) -> None:
        peer.say_error(error, request_id, fatal=True)
        self._end(peer, CloseReason.HANDSHAKE_REFUSED)
