"""Parts for testing programs that use the relay; docs/testing.md shows each.

A pytest plugin (`plugin`) offers them as fixtures. Nothing is loaded before a test asks for it, because pytest imports the plugin
in every run of whoever has this package installed.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent_relay.testing.agent import AgentProcess
    from agent_relay.testing.clock import ManualClock
    from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
    from agent_relay.testing.raw_client import RawClient

__all__ = ["AgentProcess", "DaemonFailed", "DaemonProcess", "ManualClock", "RawClient"]


def __getattr__(name: str) -> Any:
    match name:
        case "AgentProcess":
            return import_module("agent_relay.testing.agent").AgentProcess
        case "ManualClock":
            return import_module("agent_relay.testing.clock").ManualClock
        case "DaemonFailed" | "DaemonProcess":
            return getattr(import_module("agent_relay.testing.daemon"), name)
        case "RawClient":
            return import_module("agent_relay.testing.raw_client").RawClient
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
