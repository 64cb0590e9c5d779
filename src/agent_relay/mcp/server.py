"""The MCP server of one speaker: the official package's, with our tools and resources."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from anyio import BrokenResourceError, ClosedResourceError
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from msgspec import to_builtins

from agent_relay.mcp.calls import ToolCalls, explain
from agent_relay.mcp.speaker import Speaker
from agent_relay.mcp.stdio import open_streams
from agent_relay.mcp.updates import Updates
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.mcp import resources
from agent_relay.protocol.mcp.tools import INSTRUCTIONS, SERVER_NAME, TOOLS
from agent_relay.version import __version__

_TOOLS = [types.Tool.model_validate(to_builtins(tool)) for tool in TOOLS]
_MOST_SUBSCRIPTIONS = 1_000
_BROKEN_OFF = (asyncio.CancelledError, BrokenResourceError, ClosedResourceError)


async def serve(speaker: Speaker) -> None:
    """On standard input and output, until the client closes its end."""
    relay_server = RelayServer(speaker)
    server = relay_server.server
    try:
        async with open_streams() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    except BaseExceptionGroup as errors:
        # When they are cancelled, the package's tasks end in any order: one may find its stream to another closed first.
        task = asyncio.current_task()
        if task is None or not task.cancelling() or errors.split(_BROKEN_OFF)[1] is not None:
            raise
        raise asyncio.CancelledError from None
    finally:
        await relay_server.close()


class RelayServer:
    def __init__(self, speaker: Speaker) -> None:
        self._calls = ToolCalls(speaker)
        self._updates = Updates(speaker, self._tell)
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._subscribed: dict[str, Any] = {}  # addresses, and the session that wants to hear of each
        self.server: Server[Any] = Server(
            SERVER_NAME, version=__version__, instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools, on_call_tool=self._call, on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates, on_read_resource=self._read,
            on_subscribe_resource=self._subscribe, on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen_for,
        )  # fmt: skip

    async def close(self) -> None:
        await self._updates.close()

    # --- tools --------------------------------------------------------------------------------------------------------------

    async def _list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(tools=_TOOLS)

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Tells failures to the model, which can do something about them, and not to the client."""
        del context
        try:
            text, is_error = await self._calls.call(params.name, params.arguments), False
        except RelayError as error:
            text, is_error = explain(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    # --- resources ----------------------------------------------------------------------------------------------------------

    async def _list_resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        del context, params
        found = [resources.INBOX, *resources.list_threads(await self._calls.list_threads())]
        return types.ListResourcesResult(resources=[types.Resource.model_validate(each) for each in found])

    async def _list_templates(self, context: Any, params: Any) -> types.ListResourceTemplatesResult:
        del context, params
        template = types.ResourceTemplate.model_validate(resources.THREAD_TEMPLATE)
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        del context
        uri = str(params.uri)
        try:
            text = await self._calls.read(resources.read_uri(uri))
        except RelayError as error:
            raise _refuse(error) from None
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type=resources.MEDIA, text=text)]
        )  # fmt: skip

    async def _subscribe(self, context: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        try:
            resources.read_uri(uri)
        except RelayError as error:
            raise _refuse(error) from None
        if len(self._subscribed) >= _MOST_SUBSCRIPTIONS:
            raise MCPError(types.INVALID_REQUEST, f"You have {_MOST_SUBSCRIPTIONS} subscriptions; end some first.")
        self._subscribed[uri] = context.session
        await self._updates.follow()
        return types.EmptyResult()

    async def _unsubscribe(self, context: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        del context
        self._subscribed.pop(str(params.uri), None)
        return types.EmptyResult()

    async def _listen_for(
        self, context: Any, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:  # fmt: skip
        """As clients subscribe from protocol 2026-07-28 on."""
        await self._updates.follow()
        return await self._listen(context, params)

    async def _tell(self, uri: str | None) -> None:
        for changed in [uri] if uri is not None else list(self._subscribed):
            if changed in self._subscribed:
                await self._subscribed[changed].send_resource_updated(changed)
        await self._bus.publish(ResourceUpdated(uri=uri or resources.INBOX_URI))


def _refuse(error: RelayError) -> MCPError:
    code = types.INTERNAL_ERROR if error.code is ErrorCode.SERVICE_UNAVAILABLE else types.INVALID_PARAMS
    return MCPError(code, explain(error))
