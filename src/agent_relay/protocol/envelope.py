"""Every frame of the wire as a struct, tagged by `type`.

`ClientFrame` is what a client may say, `DaemonFrame` what a daemon may say; some types belong to both. The payload
of a message (SEND, DELIVER) stays raw bytes: it is routed by what stands around it and forwarded as it came.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from agent_relay.protocol import payloads as p

Id = Annotated[str, Meta(min_length=1, max_length=128)]


class Envelope(Struct, tag_field="type", kw_only=True):
    v: Literal[1, 2]
    id: Id
    ts: int | float
    from_: str | None = field(name="from", default=None)


# --- client → daemon ---------------------------------------------------------------------------------------------


class Hello(Envelope, tag="HELLO", kw_only=True):
    payload: p.HelloPayload


class Resume(Envelope, tag="RESUME", kw_only=True):
    payload: p.ResumePayload


class Send(Envelope, tag="SEND", kw_only=True, omit_defaults=True):  # an absent `payload_meta` is no JSON
    payload: Raw
    to: str | list[str] | None = None
    topic: str | None = None
    payload_meta: Raw = p.NOTHING


class Ack(Envelope, tag="ACK", kw_only=True):
    payload: p.AckPayload


class Cancel(Envelope, tag="CANCEL", kw_only=True):
    payload: p.CancelPayload


class Subscribe(Envelope, tag="SUBSCRIBE", kw_only=True):
    payload: p.SubscribePayload
    topic: str | None = None


class Unsubscribe(Envelope, tag="UNSUBSCRIBE", kw_only=True):
    payload: p.UnsubscribePayload
    topic: str | None = None


class ChannelJoin(Envelope, tag="CHANNEL_JOIN", kw_only=True):
    payload: p.JoinPayload
    to: str | None = None


class ChannelLeave(Envelope, tag="CHANNEL_LEAVE", kw_only=True):
    payload: p.Channel
    to: str | None = None


class ListAgents(Envelope, tag="LIST_AGENTS", kw_only=True):
    payload: p.ListAgentsPayload


class History(Envelope, tag="HISTORY", kw_only=True):
    payload: p.HistoryPayload


class Spawn(Envelope, tag="SPAWN", kw_only=True):
    payload: p.SpawnPayload


class Release(Envelope, tag="RELEASE", kw_only=True):
    payload: p.ReleasePayload


class AgentEvent(Envelope, tag="AGENT_EVENT", kw_only=True):
    payload: p.AgentEventPayload


class Propose(Envelope, tag="PROPOSE", kw_only=True):
    payload: p.ProposePayload


class Vote(Envelope, tag="VOTE", kw_only=True):
    payload: p.VotePayload


# --- either way --------------------------------------------------------------------------------------------------


class Nack(Envelope, tag="NACK", kw_only=True):
    payload: p.NackPayload


class Ping(Envelope, tag="PING", kw_only=True):
    payload: p.Heartbeat


class Pong(Envelope, tag="PONG", kw_only=True):
    payload: p.Heartbeat


class Bye(Envelope, tag="BYE", kw_only=True):
    payload: p.ByePayload


class Control(Envelope, tag="CONTROL", kw_only=True):
    payload: p.ControlPayload


# --- daemon → client ---------------------------------------------------------------------------------------------


class Welcome(Envelope, tag="WELCOME", kw_only=True):
    payload: p.WelcomePayload


class Sync(Envelope, tag="SYNC", kw_only=True):
    payload: p.SyncPayload


class Deliver(Envelope, tag="DELIVER", kw_only=True, omit_defaults=True):
    payload: Raw
    delivery: p.Delivery
    to: str | list[str] | None = None
    topic: str | None = None
    payload_meta: Raw = p.NOTHING
    shadows: tuple[str, ...] = ()  # who gets a copy


class Receipt(Envelope, tag="ACK", kw_only=True):
    payload: p.ReceiptPayload


class Error(Envelope, tag="ERROR", kw_only=True):
    payload: p.ErrorPayload


class Busy(Envelope, tag="BUSY", kw_only=True):
    payload: p.BusyPayload


class Agents(Envelope, tag="AGENTS", kw_only=True):
    payload: p.AgentsPayload


class HistoryResult(Envelope, tag="HISTORY_RESULT", kw_only=True):
    payload: p.HistoryResultPayload


class SpawnResult(Envelope, tag="SPAWN_RESULT", kw_only=True):
    payload: p.SpawnResultPayload


class ReleaseResult(Envelope, tag="RELEASE_RESULT", kw_only=True):
    payload: p.ReleaseResultPayload


class Consensus(Envelope, tag="CONSENSUS", kw_only=True):
    payload: p.ConsensusPayload


ClientFrame = (
    Hello | Resume | Send | Ack | Nack | Cancel | Subscribe | Unsubscribe | ChannelJoin | ChannelLeave | ListAgents
    | History | Spawn | Release | AgentEvent | Propose | Vote | Ping | Pong | Bye | Control
)  # fmt: skip

DaemonFrame = (
    Welcome | Sync | Deliver | Receipt | Nack | Error | Busy | Agents | HistoryResult | SpawnResult | ReleaseResult
    | Consensus | AgentEvent | Ping | Pong | Bye | Control
)  # fmt: skip
