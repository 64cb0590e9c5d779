"""The address of a relay, written as people write it, the two URLs it stands for, and the certificates that are trusted there."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from agent_relay.arc.errors import ArcError

ARC_PATH = "/arc"
_SECURE = {"ws": False, "http": False, "wss": True, "https": True}


@dataclass(frozen=True, slots=True)
class ArcAddress:
    secure: bool
    host: str  # with the port, where one was given
    prefix: str  # the path in front of `/arc`, `/register` and the others; usually empty

    @property
    def http_url(self) -> str:
        """Also what tells one relay from another in a file of tokens."""
        return urlunsplit(("https" if self.secure else "http", self.host, self.prefix, "", ""))

    @property
    def socket_url(self) -> str:
        return urlunsplit(("wss" if self.secure else "ws", self.host, self.prefix + ARC_PATH, "", ""))


def parse_address(url: str) -> ArcAddress:
    """`ws://host:3888/arc`, `https://relay.example.com` and their like. Raises ArcError for anything else."""
    try:
        parts = urlsplit(url if "://" in url else f"ws://{url}")
        _ = parts.port  # raises for one that is no number
    except ValueError as error:
        raise ArcError(f"{url!r} is not a relay address: {error}.", code="invalid_url") from None
    if parts.scheme not in _SECURE or not parts.hostname:
        raise ArcError(f"{url!r} is not a relay address; use ws://host:port/arc or wss://…", code="invalid_url")
    if parts.query or parts.fragment or parts.username is not None:
        # It would end in lists of processes and logs. The text does not repeat it.
        raise ArcError(
            "The address must not contain a token or other parameters; pass the token in a file or the environment.",
            code="invalid_url",
        )
    prefix = parts.path.rstrip("/").removesuffix(ARC_PATH)
    return ArcAddress(_SECURE[parts.scheme], parts.netloc.lower(), prefix)


def choose_tls(url: str, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """None where the address is not for TLS."""
    return (given or ssl.create_default_context()) if url.startswith(("wss:", "https:")) else None
