"""Agent Relay: AI coding CLIs in separate terminals, talking to each other.

What programs use is here by name and loaded when it is first asked for, so that importing the package costs nothing
and never brings in the server's side.
"""

from __future__ import annotations

from importlib import import_module

from agent_relay.version import __version__

TYPE_CHECKING = False  # as in `typing`, without the time that it takes: whoever presses Ctrl-C meanwhile sees a traceback
if TYPE_CHECKING:
    from typing import Any

    from agent_relay import patterns
    from agent_relay.protocol.errors import ErrorCode, RelayError
    from agent_relay.protocol.states import ClientState
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.errors import ConnectionLost, DaemonNotRunning, StrangerAtSocket, TimedOut
    from agent_relay.sdk.events import EventFeed, EventsPage
    from agent_relay.sdk.messages import Message
    from agent_relay.sdk.proposals import Proposal
    from agent_relay.sdk.receipts import Delivered, Receipt
    from agent_relay.sdk.requests import Question, Reply
    from agent_relay.sdk.streams import MessageStream
    from agent_relay.sdk.sync import SyncRelayClient
    from agent_relay.sdk.sync_parts import SyncEventFeed, SyncMessage, SyncMessageStream, SyncProposal, SyncQuestion, SyncReceipt
    from agent_relay.sdk.views import AgentInfo, AgentsView, ChannelInfo, HistoryPage, MessageView, Spawned

__all__ = [
    "AgentInfo", "AgentsView", "ChannelInfo", "ClientState", "ConnectionLost", "DaemonNotRunning", "Delivered", "ErrorCode",
    "EventFeed", "EventsPage", "HistoryPage", "Message", "MessageStream", "MessageView", "Proposal", "Question", "Receipt",
    "RelayClient", "RelayError", "Reply", "Spawned", "StrangerAtSocket", "SyncEventFeed", "SyncMessage", "SyncMessageStream",
    "SyncProposal", "SyncQuestion", "SyncReceipt", "SyncRelayClient", "TimedOut", "__version__", "patterns",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    value: Any
    match name:
        case "RelayClient":
            value = import_module("agent_relay.sdk.client").RelayClient
        case "SyncRelayClient":
            value = import_module("agent_relay.sdk.sync").SyncRelayClient
        case "SyncEventFeed" | "SyncMessage" | "SyncMessageStream" | "SyncProposal" | "SyncQuestion" | "SyncReceipt":
            value = getattr(import_module("agent_relay.sdk.sync_parts"), name)
        case "RelayError" | "ErrorCode":
            value = getattr(import_module("agent_relay.protocol.errors"), name)
        case "ConnectionLost" | "DaemonNotRunning" | "StrangerAtSocket" | "TimedOut":
            value = getattr(import_module("agent_relay.sdk.errors"), name)
        case "ClientState":
            value = import_module("agent_relay.protocol.states").ClientState
        case "Message":
            value = import_module("agent_relay.sdk.messages").Message
        case "MessageStream":
            value = import_module("agent_relay.sdk.streams").MessageStream
        case "Proposal":
            value = import_module("agent_relay.sdk.proposals").Proposal
        case "Delivered" | "Receipt":
            value = getattr(import_module("agent_relay.sdk.receipts"), name)
        case "Question" | "Reply":
            value = getattr(import_module("agent_relay.sdk.requests"), name)
        case "EventFeed" | "EventsPage":
            value = getattr(import_module("agent_relay.sdk.events"), name)
        case "AgentInfo" | "AgentsView" | "ChannelInfo" | "HistoryPage" | "MessageView" | "Spawned":
            value = getattr(import_module("agent_relay.sdk.views"), name)
        case "patterns":
            value = import_module("agent_relay.patterns")
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
