"""The dashboard: its page and the page's files. They hold nothing of the relay's and ask for no token; what they show comes
from the API, which does.

Everything comes from here and nothing from elsewhere, as the policy says to the browser. Styles that a library makes while it
runs carry a word that is new for each answer.
"""

from __future__ import annotations

import asyncio
import secrets

from agent_relay.ports.pages import Asset
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.errors import not_found
from agent_relay.transports.http.route import HTML, Call, Route, Text

_PAGE = "index.html"
_NONCE, _RELAY = b"{nonce}", b"{relay}"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; media-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HARDENING = (
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), usb=(), payment=()"),
)
_ANY = "*/*"
NOT_MODIFIED = 304


async def page(api: Api, call: Call) -> Text:
    del call
    asset = await _find(api, _PAGE)
    nonce = secrets.token_urlsafe(16)
    headers = (("content-security-policy", _POLICY.format(nonce=nonce)), *_HARDENING)
    content = asset.content.replace(_NONCE, nonce.encode()).replace(_RELAY, api.page_keys.name.encode())
    return Text(content, HTML, headers=headers)


async def file(api: Api, call: Call) -> Text:
    asset = await _find(api, call.names["path"])
    # Asked for again each time, and answered in a word: after an upgrade no page mixes old files with new ones.
    headers = (("cache-control", "no-cache"), ("etag", asset.etag), *_HARDENING)
    if asset.etag in call.headers.get("if-none-match", ""):
        return Text(b"", asset.media, NOT_MODIFIED, headers)
    return Text(asset.content, asset.media, headers=headers)


async def _find(api: Api, path: str) -> Asset:
    asset = await asyncio.to_thread(api.assets.find, path)
    if asset is None:
        raise not_found("There is no such file.")
    return asset


_TAG = "server"
ROUTES = (
    Route("GET", "/", page, "The dashboard.", _TAG, media=HTML, is_open=True, errors=(404,)),
    Route("GET", "/static/{path}", file, "The files of the dashboard.", _TAG, media=_ANY, is_open=True, is_described=False),
)
