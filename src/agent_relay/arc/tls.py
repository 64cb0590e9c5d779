"""Trusted certificates: those of a context that is given, else what the system trusts."""

from __future__ import annotations

import ssl


def choose_tls(url: str, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """None where the address is not for TLS."""
    return (given or ssl.create_default_context()) if url.startswith(("wss:", "https:")) else None
