"""The way in for the dashboard's page: a code for one browser, exchanged for a key; and all keys taken back."""

from __future__ import annotations

from agent_relay.protocol.encode import encode_json
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import PageCodeBody
from agent_relay.transports.http.guard import WrongToken, is_token
from agent_relay.transports.http.route import JSON, Call, Route, Text
from agent_relay.transports.http.views import ForgottenPages, PageCodeView, PageKeyView

_WRONG = "That code is not valid: each works once, within a minute. Run `agent-relay open` for a new one."


async def new_code(api: Api, call: Call) -> PageCodeView:
    del call
    made = api.page_keys.new_code()
    return PageCodeView(made.code, made.expires_at)


async def new_key(api: Api, call: Call) -> Text:
    said = call.body.code.strip()
    if not api.page_keys.take_code(said) and not (api.token is not None and is_token(api.token, said)):
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
    Route("POST", "/api/v1/page-codes", new_code, "A code that lets one browser in, once, within a minute.", _TAG,
          PageCodeView, 201),
    Route("POST", _KEYS, new_key, "Exchange a code for a page's key.", _TAG, PageKeyView, 201, PageCodeBody, is_open=True,
          errors=(401, 429), description="The response sets a cookie and has the other half of the key, which the page sends as "
          "`X-Relay-Page`. The API token is accepted instead of a code."),
    Route("DELETE", _KEYS, forget, "Sign out all browsers.", _TAG, ForgottenPages),
)  # fmt: skip
