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
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.messages import Message
    from agent_relay.sdk.receipts import Receipt
    from agent_relay.sdk.sync import SyncRelayClient

__all__ = ["ErrorCode", "Message", "Receipt", "RelayClient", "RelayError", "SyncRelayClient", "__version__", "patterns"]


def __getattr__(name: str) -> Any:
    value: Any
    match name:
        case "RelayClient":
            value = import_module("agent_relay.sdk.client").RelayClient
        case "SyncRelayClient":
            value = import_module("agent_relay.sdk.sync").SyncRelayClient
        case "RelayError" | "ErrorCode":
            value = getattr(import_module("agent_relay.protocol.errors"), name)
        case "Message":
            value = import_module("agent_relay.sdk.messages").Message
        case "Receipt":
            value = import_module("agent_relay.sdk.receipts").Receipt
        case "patterns":
            value = import_module("agent_relay.patterns")
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
