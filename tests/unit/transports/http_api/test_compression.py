"""Compression: for a page that takes it, where it is worth it, and for nobody else."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from agent_relay.transports.http.compression import pack

LONG = b'{"agents":[' + b'"Alice",' * 500 + b'"Bob"]}'
PAGE = {"x-relay-page": "k", "accept-encoding": "gzip, deflate, br"}


@pytest.mark.parametrize("body", [LONG, LONG * 40])
def test_a_page_gets_less(body: bytes) -> None:
    packed = asyncio.run(pack(body, PAGE))
    assert packed is not None
    assert gzip.decompress(packed.content) == body
    assert len(packed.content) < len(body) / 10
    assert ("content-encoding", "gzip") in packed.headers


@pytest.mark.parametrize(
    ("body", "headers"), [(b"{}", PAGE), (LONG, {"accept-encoding": "gzip"}), (LONG, {"x-relay-page": "k"}), (LONG, {})]
)
def test_others_get_it_as_it_is(body: bytes, headers: dict[str, str]) -> None:
    assert asyncio.run(pack(body, headers)) is None
