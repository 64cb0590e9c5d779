"""Compression of answers to the page: its files, and what it reads again and again. Other clients get what they always got."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping

from agent_relay.transports.http.route import JSON, Text

GZIP_HEADERS = (("content-encoding", "gzip"), ("vary", "Accept-Encoding"))
_LEAST_BYTES = 1_400  # what fits into one packet is sent as it is
_IN_A_THREAD_BYTES = 65_536  # more would stop everybody else for a moment
_LEVEL = 1  # a tenth of the size, at a tenth of the time that a little less would take


def accepts_gzip(headers: Mapping[str, str]) -> bool:
    """By the word alone: whoever refuses it by `q=0` is no browser."""
    return "gzip" in headers.get("accept-encoding", "")


async def pack(body: bytes, headers: Mapping[str, str]) -> Text | None:
    """JSON for a page that takes it compressed; None: it is sent as it is."""
    if len(body) < _LEAST_BYTES or "x-relay-page" not in headers or not accepts_gzip(headers):
        return None
    if len(body) > _IN_A_THREAD_BYTES:
        packed = await asyncio.to_thread(gzip.compress, body, _LEVEL)
    else:
        packed = gzip.compress(body, _LEVEL)
    return Text(packed, JSON, headers=GZIP_HEADERS)
