"""Shadows: agents that get a copy of what others send and receive, where the owner set it up.

A copy is the message itself, delivered to one more agent. The stored message says to whom (`encode.encode_tail`), so whoever
got it can see that, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from agent_relay.protocol.access_rules import is_name_pattern, matches
from agent_relay.protocol.names import is_name

CAPABILITY = "shadows"
MAX_SHADOWINGS = 200
Traffic = Literal["both", "incoming", "outgoing"]
_ONE_WAY: dict[str, Traffic] = {"incoming": "incoming", "outgoing": "outgoing"}
_VERBS: dict[Traffic, str] = {"both": "sends or receives", "incoming": "receives", "outgoing": "sends"}
_FORM = "pairs such as Auditor:Alice, Auditor:Worker* or Auditor:Alice:incoming (or :outgoing), separated by commas"


class Shadowing(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`shadow` gets a copy of the traffic of whoever `of` matches."""

    shadow: str
    of: str  # an agent's name, with * for any characters
    traffic: Traffic = "both"

    def __post_init__(self) -> None:
        if not is_name(self.shadow) or not is_name_pattern(self.of):
            raise ValueError("`shadow` is an agent's name, and `of` is one, too, or has * for any characters")

    def is_of(self, agent: str) -> bool:
        return matches(self.of, agent)

    @property
    def hears_incoming(self) -> bool:
        return self.traffic != "outgoing"

    @property
    def hears_outgoing(self) -> bool:
        return self.traffic != "incoming"


def parse_shadows(text: str) -> tuple[Shadowing, ...]:
    """The owner's setting; raises ValueError."""
    words = text.replace(",", " ").split()
    found = []
    for word in words:
        shadow, colon, of = word.partition(":")
        if not colon:
            raise ValueError(_FORM)
        found.append(parse_shadowing(shadow, of))
    return tuple(found)


def parse_shadowing(shadow: str, of: str) -> Shadowing:
    """`Alice`, `Worker*` or `Alice:incoming` for that shadow; raises ValueError."""
    name, colon, way = of.partition(":")
    if colon and way not in _ONE_WAY:
        raise ValueError(_FORM)
    try:
        return Shadowing(shadow, name, _ONE_WAY.get(way, "both"))
    except ValueError:
        raise ValueError(_FORM) from None


def describe_traffic(traffic: Traffic, who: str) -> str:
    """`Alice sends or receives`, after "a copy of what"."""
    if who != "you":
        return f"{who} {_VERBS[traffic]}"
    return "you " + _VERBS[traffic].replace("sends", "send").replace("receives", "receive")


def describe_shadowings(shadowings: Iterable[Shadowing]) -> list[str]:
    """For lists: `Alice`, `Worker* (incoming)`."""
    return [each.of + ("" if each.traffic == "both" else f" ({each.traffic})") for each in shadowings]
