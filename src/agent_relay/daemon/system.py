"""The system that the daemon runs on: its clock, its dice, and whose daemon it is."""

from __future__ import annotations

import os
import pwd
import random
import secrets
import time

from agent_relay.protocol.names import person_name


class SystemClock:
    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SystemEntropy:
    def fraction(self) -> float:
        return random.random()

    def bits(self, count: int) -> int:
        return secrets.randbits(count)

    def token(self) -> str:
        return secrets.token_urlsafe(32)


def owner_name() -> str:
    """The person whose daemon this is, as what they send is from. By the login of this process's user, whatever the environment
    says: the daemon keeps the same name free for them."""
    try:
        login = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user without an entry, as in some containers
        login = f"uid-{os.geteuid()}"
    return person_name(login)
