"""The server itself: is it alive, is it ready, what can it do, how is it doing, and which hosts has its cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from agent_relay.protocol.hosts import ClusterFacts
from agent_relay.transports.http.api import Api, need
from agent_relay.transports.http.docs_page import docs_page
from agent_relay.transports.http.errors import unavailable
from agent_relay.transports.http.route import HTML, JSON, METRICS, Call, Route, Text
from agent_relay.transports.http.views import Health, HostList, HostView, ProjectList, ProjectView, Ready, Status, Store, build
from agent_relay.version import __version__

_ALONE = ClusterFacts("", "")


async def health(api: Api, call: Call) -> Health:
    del call
    return Health("ok", __version__, api.service.server().uptime_ms)


async def ready(api: Api, call: Call) -> Ready:
    del call
    if not api.is_ready():
        raise unavailable("The daemon is stopping.")
    if api.service.server().storage.problem:
        raise unavailable("Nothing can be stored now; `agent-relay status` says why.")
    return Ready(True)


async def status(api: Api, call: Call) -> Status:
    del call
    server, agents, used = api.service.server(), api.service.agents(), api.usage.total()
    kinds = [found.request.kind for agent in agents for found in agent.requests]
    return build(
        Status, server, storage=build(Store, server.storage), agents=len(agents), messages=server.storage.messages,
        permissions=kinds.count("permission"), questions=kinds.count("question"),
        total_tokens=used.total_tokens, estimated_cost_usd=used.estimated_cost_usd,
        last_seq=api.bus.last_seq, marks_version=api.marks.version, you=api.service.name,
    )  # fmt: skip


async def metrics(api: Api, call: Call) -> Text:
    del call
    content = api.metrics.show(api.service.server(), api.service.agents(), api.streams.count)
    return Text(content, METRICS)


async def openapi(api: Api, call: Call) -> Text:
    del call
    return Text(api.description(), JSON)


async def docs(api: Api, call: Call) -> Text:
    del call
    return Text(docs_page(msgspec.json.decode(api.description())), HTML)


async def list_hosts(api: Api, call: Call) -> HostList:
    del call
    found = _ALONE if api.see_cluster is None else api.see_cluster()
    return build(HostList, found, hosts=[build(HostView, host, role=host.role.value) for host in found.hosts])


async def list_projects(api: Api, call: Call) -> ProjectList:
    del call
    found = await asyncio.to_thread(need(api.projects, "a list of projects").others)
    return ProjectList([build(ProjectView, each) for each in found])


_TAG = "server"
ROUTES = (
    Route("GET", "/health", health, "Whether the daemon is alive.", _TAG, Health, is_open=True),
    Route("GET", "/ready", ready, "Whether it accepts requests.", _TAG, Ready, is_open=True, errors=(503,)),
    Route("GET", "/api/v1/status", status, "The relay at a glance: agents, waiting requests, costs.", _TAG, Status),
    Route("GET", "/metrics", metrics, "Numbers for Prometheus.", _TAG, media=METRICS),
    Route("GET", "/openapi.json", openapi, "This description.", _TAG, dict[str, Any]),
    Route("GET", "/docs", docs, "This description as a page.", _TAG, media=HTML),
    Route(
        "GET",
        "/api/v1/projects",
        list_projects,
        "The other projects of this user whose relay runs.",
        _TAG,
        ProjectList,
        errors=(503,),
    ),
    Route("GET", "/api/v1/hosts", list_hosts, "The hosts of the cluster, and how they are.", _TAG, HostList),
)
