"""Workspaces, and the older routes to agents. A workspace is a project directory with its daemon; agents go by their names."""

from __future__ import annotations

import asyncio

from agent_relay.ports.watchers import Workspace
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import InputBody, LinesQuery, NewSession, NewWorkspace
from agent_relay.transports.http.errors import CONFLICT, HttpError
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.routes import agents
from agent_relay.transports.http.routes.sessions import STARTING_FAILS, release, start_session
from agent_relay.transports.http.session_views import StartedSession
from agent_relay.transports.http.views import AgentList, AgentView, Done, Output, WorkspaceList, WorkspaceView


def _show(workspace: Workspace) -> WorkspaceView:
    return WorkspaceView(
        workspace.id, workspace.path, workspace.name, workspace.is_running, workspace.is_default, workspace.is_own
    )  # fmt: skip


async def list_workspaces(api: Api, call: Call) -> WorkspaceList:
    del call
    return WorkspaceList([_show(each) for each in await asyncio.to_thread(api.workspaces.all)])


async def add_workspace(api: Api, call: Call) -> WorkspaceView:
    return _show(await asyncio.to_thread(api.workspaces.add, call.body.path, call.body.name))


async def get_workspace(api: Api, call: Call) -> WorkspaceView:
    return _show(await _find(api, call))


async def remove_workspace(api: Api, call: Call) -> Done:
    await asyncio.to_thread(api.workspaces.remove, call.names["id"])
    return Done()


async def switch_workspace(api: Api, call: Call) -> WorkspaceView:
    return _show(await asyncio.to_thread(api.workspaces.switch, call.names["id"]))


async def workspace_agents(api: Api, call: Call) -> AgentList:
    workspace = await _find(api, call)
    if workspace.is_own:
        return await agents.list_agents(api, call)
    found = await asyncio.to_thread(api.workspaces.agents, workspace.id)
    return AgentList([_sketch(*each) for each in found])


def _sketch(name: str, cli: str | None, connected: bool, session_id: str) -> AgentView:
    """As much as another daemon writes down."""
    return AgentView(
        name=name, cli=cli, connected=connected, session_id=session_id, state="idle" if connected else "offline",
        queue_depth=0, queue_capacity=0, inflight=0, registered_at=0, last_seen_at=0,
    )  # fmt: skip


async def workspace_spawn(api: Api, call: Call) -> StartedSession:
    workspace = await _find(api, call)
    if not workspace.is_own:
        raise HttpError(
            CONFLICT, ErrorCode.PERMISSION_DENIED,
            f"{workspace.path} has its own daemon: use that one, or run `agent-relay spawn` there.",
            reason="other_workspace",
        )  # fmt: skip
    return await start_session(api, call.body, call.caller)


async def _find(api: Api, call: Call) -> Workspace:
    return await asyncio.to_thread(api.workspaces.get, call.names["id"])


def _by_name(call: Call) -> Call:
    return Call({"name": call.names["id"]}, call.query, call.body, call.headers, call.address, call.caller)


async def get_agent(api: Api, call: Call) -> AgentView:
    return await agents.get_agent(api, _by_name(call))


async def remove_agent(api: Api, call: Call) -> Done:
    """One that the daemon started is released; the program of another is asked to end."""
    name = agents.find_name(api, call.names["id"])
    try:
        await release(api, name, call.caller)
    except RelayError as error:
        if error.details.get("reason") != "not_spawned":
            raise
        await api.service.control(name, "stop", caller=call.caller)
    return Done()


async def agent_output(api: Api, call: Call) -> Output:
    return await agents.output(api, _by_name(call))


async def agent_input(api: Api, call: Call) -> Done:
    return await agents.type_in(api, _by_name(call))


async def agent_interrupt(api: Api, call: Call) -> Done:
    await api.service.control(agents.find_name(api, call.names["id"]), "interrupt", caller=call.caller)
    return Done()


_TAG = "workspaces"
_ALL, _ONE = "/workspaces", "/workspaces/{id}"
_AGENT = "/agents/{id}"
_FAILS = (404, 409, 429, 503)
ROUTES = (
    Route("GET", _ALL, list_workspaces, "Every workspace.", _TAG, WorkspaceList),
    Route("POST", _ALL, add_workspace, "Add a directory.", _TAG, WorkspaceView, 201, NewWorkspace, errors=(409, 503)),
    Route("GET", _ONE, get_workspace, "One workspace.", _TAG, WorkspaceView, errors=(404,)),
    Route("DELETE", _ONE, remove_workspace, "Remove it. Its directory stays.", _TAG, Done, errors=(404, 409, 503)),
    Route("POST", _ONE + "/switch", switch_workspace, "Make it the default.", _TAG, WorkspaceView, errors=(404, 503)),
    Route("GET", _ONE + "/agents", workspace_agents, "Its agents.", _TAG, AgentList, errors=(404,)),
    Route("POST", _ONE + "/agents", workspace_spawn, "Start an agent in it.", _TAG, StartedSession, 201, NewSession,
          errors=STARTING_FAILS, right="spawn", takes_key=True),
    Route("GET", "/agents", agents.list_agents, "Every agent.", _TAG, AgentList),
    Route("GET", _AGENT, get_agent, "One agent.", _TAG, AgentView, errors=(404,)),
    Route("DELETE", _AGENT, remove_agent, "End it.", _TAG, Done, errors=_FAILS, right="control"),
    Route("GET", _AGENT + "/output", agent_output, "Its terminal output.", _TAG, Output, query=LinesQuery, errors=(404,)),
    Route("POST", _AGENT + "/input", agent_input, "Type into its terminal.", _TAG, Done, body=InputBody, errors=_FAILS,
          right="control", takes_key=True),
    Route("POST", _AGENT + "/interrupt", agent_interrupt, "Interrupt what it is doing.", _TAG, Done, errors=_FAILS,
          right="control", takes_key=True),
    Route("POST", "/agents/by-name/{name}/interrupt", agents.controller("interrupt"), "The same, by name.", _TAG, Done,
          errors=_FAILS, right="control", takes_key=True),
)  # fmt: skip
