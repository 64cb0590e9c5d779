"""Names a message can be addressed to: agents, channels, topics, and the pattern language of subscriptions."""

from __future__ import annotations

import re
from difflib import get_close_matches

from agent_relay.protocol.errors import ErrorCode, RelayError

BROADCAST = "*"
CHANNEL_MARK = "#"
EVENTS_TOPIC = "$events"  # subscribing to it follows what happens in the relay; nothing can be published to it
RESERVED = frozenset({"relay", "daemon", "system", "all", "everyone", "spawn", "release", "human"})
# The relay speaks of itself, its owner and the owner's commands under these names: nobody else may be called so.
OWN_NAMES = frozenset({"http", "policy", "door"})
OWN_PREFIX = "cli-"
SPARE_NAMES = 9  # how many of one person's commands can talk at once
MAX_TOPIC_LENGTH = 256  # a topic is part of every stream's key; a longer one is a mistake, not a topic

_MAX_LOGIN = 50
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def is_channel(text: str) -> bool:
    return text[:1] == CHANNEL_MARK and is_name(text[1:])


def fold_name(name: str) -> str:
    """The form names are compared in: `bob` reaches `Bob`."""
    return name.lower()


def is_reserved(name: str) -> bool:
    return fold_name(name) in RESERVED or is_own(name)


def is_own(name: str) -> bool:
    folded = fold_name(name)
    return folded in OWN_NAMES or folded.startswith(OWN_PREFIX)


def person_name(login: str) -> str:
    """The name that a person of this login sends under."""
    name = _NOT_IN_NAMES.sub("-", login).strip("-.")[:_MAX_LOGIN] or "user"
    return f"user-{name}" if is_reserved(name) or not is_name(name) else name


def spare_names(name: str) -> list[str]:
    """The name, and those that stand in for it while somebody else has it."""
    return [name, *(f"{name}-{number}" for number in range(2, SPARE_NAMES + 1))]


def check_agent_name(name: str) -> None:
    """Raises unless an agent may register under this name."""
    if not is_name(name):
        raise RelayError(
            ErrorCode.INVALID_TARGET,
            f"{show(name)} cannot be an agent's name: use 1 to 64 letters, digits, '_', '.' or '-', "
            "starting with a letter or digit.",
            name=show(name, 80),
        )
    if fold_name(name) in RESERVED:
        raise RelayError(ErrorCode.INVALID_TARGET, f"The name {name!r} is reserved; choose another.", name=name)


def check_channel(channel: str) -> None:
    if not is_channel(channel):
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"{show(channel)} is not a channel: a channel is '#' plus a name.", name=show(channel, 80)
        )


def is_topic(topic: str) -> bool:
    """A topic to publish to: tokens between dots, none empty, no wildcard, nothing that is not printable."""
    return (
        0 < len(topic) <= MAX_TOPIC_LENGTH
        and topic.isprintable()
        and all(token and token not in {"*", ">"} and " " not in token for token in topic.split("."))
    )


def is_pattern(pattern: str) -> bool:
    """A topic to subscribe to: `*` stands for one token, `>` as the last token for one or more."""
    if not 0 < len(pattern) <= MAX_TOPIC_LENGTH or not pattern.isprintable():
        return False
    tokens = pattern.split(".")
    return all(token and " " not in token for token in tokens) and ">" not in tokens[:-1]


def pattern_matches(pattern: str, topic: str) -> bool:
    wanted, given = pattern.split("."), topic.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(given) <= len(wanted):
            return False
        given = given[: len(wanted)]
    return len(wanted) == len(given) and all(w in {"*", g} for w, g in zip(wanted, given, strict=True))


def did_you_mean(name: str, known: list[str]) -> list[str]:
    """At most three known names near a mistyped one, compared without case."""
    shown = {fold_name(candidate): candidate for candidate in known}
    return [shown[match] for match in get_close_matches(fold_name(name), shown, n=3, cutoff=0.6)]


def show(text: str, limit: int = 40) -> str:
    """A name from outside, fit for a log or an error: escapes made visible, length bounded."""
    quoted = ascii(text)
    return quoted if len(quoted) <= limit else quoted[: limit - 1] + "…"
