"""The server itself: is it alive, is it ready, what can it do, how is it doing."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_relay.transports.http import pages
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.errors import unavailable
from agent_relay.transports.http.route import HTML, JSON, METRICS, Call, Route, Text
from agent_relay.transports.http.views import Health, Ready
from agent_relay.version import __version__


async def show_start(api: Api, call: Call) -> Text:
    del api, call
    return Text(pages.start_page(), HTML)


async def health(api: Api, call: Call) -> Health:
    del call
    return Health("ok", __version__, (await api.service.server())["uptime_ms"])


async def ready(api: Api, call: Call) -> Ready:
    del call
    if not api.is_ready():
        raise unavailable("The daemon is stopping.")
    return Ready(True)


async def metrics(api: Api, call: Call) -> Text:
    del call
    content = api.metrics.show(await api.service.server(), await api.service.agents(), api.streams.count)
    return Text(content, METRICS)


async def openapi(api: Api, call: Call) -> Text:
    del call
    return Text(api.description(), JSON)


async def docs(api: Api, call: Call) -> Text:
    del call
    return Text(pages.docs_page(msgspec.json.decode(api.description())), HTML)


_TAG = "server"
ROUTES = (
    Route("GET", "/", show_start, "The start page.", _TAG, media=HTML, is_open=True),
    Route("GET", "/health", health, "Whether the daemon is alive.", _TAG, Health, is_open=True),
    Route("GET", "/ready", ready, "Whether it takes requests.", _TAG, Ready, is_open=True, errors=(503,)),
    Route("GET", "/metrics", metrics, "Numbers for Prometheus.", _TAG, media=METRICS),
    Route("GET", "/openapi.json", openapi, "This description.", _TAG, dict[str, Any]),
    Route("GET", "/docs", docs, "This description, for people.", _TAG, media=HTML),
)
