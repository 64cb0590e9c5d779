"""ARC, from the outside: a client for any ARC relay, the file of its tokens, and a suite that checks whether a relay keeps to
the protocol (`conformance`). Nothing here knows the daemon.

What programs use is here by name and loaded when it is first asked for, so that the command line starts without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_relay.arc.client import ArcClient
    from agent_relay.arc.errors import ArcClosed, ArcError, ArcRefused, ArcRejected, ArcTimeout
    from agent_relay.arc.frames import ArcMessage
    from agent_relay.arc.link import ArcState, Patience
    from agent_relay.arc.registration import Registration, refresh_token, register, unregister

__all__ = [
    "ArcClient", "ArcClosed", "ArcError", "ArcMessage", "ArcRefused", "ArcRejected", "ArcState", "ArcTimeout", "Patience",
    "Registration", "refresh_token", "register", "unregister",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    match name:
        case "ArcClient":
            module = import_module("agent_relay.arc.client")
        case "ArcClosed" | "ArcError" | "ArcRefused" | "ArcRejected" | "ArcTimeout":
            module = import_module("agent_relay.arc.errors")
        case "ArcMessage":
            module = import_module("agent_relay.arc.frames")
        case "ArcState" | "Patience":
            module = import_module("agent_relay.arc.link")
        case "Registration" | "refresh_token" | "register" | "unregister":
            module = import_module("agent_relay.arc.registration")
        case _:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
