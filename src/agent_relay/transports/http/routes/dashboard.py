"""The dashboard: its page, the page's files, and its way in. The files hold nothing of the relay's and ask for no token; what
they show comes from the API, for a key that a browser gets for a code.

Everything comes from here and nothing from elsewhere, as the policy says to the browser. Styles that a library makes while it
runs carry a word that is new for each answer.
"""

from __future__ import annotations

import asyncio
import secrets

from agent_relay.ports.pages import Asset
from agent_relay.protocol.encode import encode_json
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import PageCodeBody
from agent_relay.transports.http.compression import GZIP_HEADERS, accepts_gzip
from agent_relay.transports.http.errors import not_found
from agent_relay.transports.http.guard import WrongToken, is_token
from agent_relay.transports.http.route import HTML, JSON, Call, Route, Text
from agent_relay.transports.http.views import ForgottenPages, PageCodeView, PageKeyView

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
_WRONG = "That code is not valid: each works once, within a minute. Run `agent-relay open` for a new one."


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
    if asset.packed and accepts_gzip(call.headers):
        return Text(asset.packed, asset.media, headers=(*headers, *GZIP_HEADERS))
    return Text(asset.content, asset.media, headers=(*headers, ("vary", "Accept-Encoding")))


async def _find(api: Api, path: str) -> Asset:
    asset = await asyncio.to_thread(api.assets.find, path)
    if asset is None:
        raise not_found("There is no such file.")
    return asset


# --- the way in -----------------------------------------------------------------------------------------------------------


async def new_code(api: Api, call: Call) -> PageCodeView:
    del call
    made = api.page_keys.new_code()
    return PageCodeView(made.code, made.expires_at)


async def new_key(api: Api, call: Call) -> Text:
    said = call.body.code.strip()
    if not api.page_keys.take_code(said) and not (api.token_hash is not None and is_token(api.token_hash, said)):
        await api.guesses.punish(call.address, said)
        raise WrongToken(_WRONG, said)
    key = api.page_keys.new_key()
    cookie = api.page_keys.cookie(key, secure=api.is_encrypted)
    return Text(encode_json(PageKeyView(key.half)), JSON, headers=(("set-cookie", cookie),))


async def forget(api: Api, call: Call) -> ForgottenPages:
    del call
    count = api.page_keys.forget()
    api.streams.end_all()  # whoever still may comes again
    return ForgottenPages(count)


_TAG = "server"
_KEYS = "/api/v1/page-keys"
ROUTES = (
    Route("GET", "/", page, "The dashboard.", _TAG, media=HTML, is_open=True, errors=(404,)),
    Route("GET", "/static/{path}", file, "The files of the dashboard.", _TAG, media=_ANY, is_open=True, is_described=False),
    Route("POST", "/api/v1/page-codes", new_code, "A code that lets one browser in, once, within a minute.", _TAG,
          PageCodeView, 201),
    Route("POST", _KEYS, new_key, "Exchange a code for a page's key.", _TAG, PageKeyView, 201, PageCodeBody, is_open=True,
          errors=(401, 429), description="The response sets a cookie and has the other half of the key, which the page sends as "
          "`X-Relay-Page`. The API token is accepted instead of a code."),
    Route("DELETE", _KEYS, forget, "Sign out all browsers.", _TAG, ForgottenPages),
)  # fmt: skip
