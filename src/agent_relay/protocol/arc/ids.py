"""Ids of agents over ARC, and the form of the tokens that show them."""

from __future__ import annotations

import re

RELAY = "relay"  # who the relay itself is, in `from` and in `to`
TOKEN_PREFIX = "tok_"  # noqa: S105 - what tokens begin with
INVITATION_PREFIX = "inv_"  # what the codes of invitations begin with
LONGEST_TOKEN = 256  # a longer text is none, and not worth a hash

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9-]*[a-z0-9]", re.ASCII)
_SHORTEST, _LONGEST = 3, 64


def is_agent_id(text: str) -> bool:
    return _SHORTEST <= len(text) <= _LONGEST and _AGENT_ID.fullmatch(text) is not None
