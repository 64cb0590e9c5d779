"""`/mcp` with the official client over HTTP, and by hand where a client would not do it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agent_relay.protocol.mcp.tools import TOOLS

from .conftest import StartServer
from .server import DEADLINE_S, ME, Server

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@asynccontextmanager
async def connected(server: Server, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    async with (
        asyncio.timeout(DEADLINE_S),
        httpx2.AsyncClient(headers=server.daemon.api_headers, timeout=DEADLINE_S) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=mode, **options) as client,
    ):
        yield client


async def call(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return str(getattr(result.content[0], "text", ""))


def post(http: httpx.Client, method: str, params: Any = None, headers: dict[str, str] | None = None) -> httpx.Response:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}
    return http.post("/mcp", json=asked, headers=headers or {})


def call_by_hand(http: httpx.Client, tool: Any, arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = post(http, "tools/call", {"name": tool, "arguments": arguments}).json()
    return found


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_sends_asks_and_reads(server: Server, mode: str) -> None:
    async def scene() -> None:
        bob_name = f"Http-{mode}"
        async with connected(server, mode) as client, server.daemon.connect(bob_name) as bob:
            assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in TOOLS]
            assert f"You are {ME}" in await call(client, "relay_status")
            assert bob_name in await call(client, "relay_agents")
            await call(client, "relay_send", to=bob_name, text="hello", thread="t/1")
            message = await bob.receive(DEADLINE_S)
            assert (message.from_, message.body, message.thread) == (ME, "hello", "t/1")
            await message.ack()
            assert f"{bob_name}: delivered" in await call(client, "relay_status", id=message.id)

            sent = await bob.send(ME, f"from {bob_name}")
            for peek in (True, False):
                assert f"> from {bob_name}" in await call(client, "relay_inbox", peek=peek)
            assert f"from {bob_name}" not in await call(client, "relay_inbox")
            await call(client, "relay_reply", id=sent.message_id, text="thanks")
            assert (await bob.receive(DEADLINE_S)).reply_to == sent.message_id

            asked = asyncio.create_task(call(client, "relay_ask", to=bob_name, text="ready?", seconds=50))
            await (await bob.receive(DEADLINE_S)).reply("yes")
            assert await asked == f"{bob_name} answered:\n> yes"
            builds = f"builds-{mode}"
            await call(client, "relay_join", channel=builds)
            await bob.join(f"#{builds}")
            await bob.set_topic_line(f"#{builds}", "What CI says")
            assert f"#{builds}, 2 members: What CI says" in await call(client, "relay_agents")
            await call(client, "relay_join", channel=builds, leave=True)
            assert f"#{builds}, 1 member: What CI says" in await call(client, "relay_agents")
            assert "> hello" in await call(client, "relay_history", **{"with": bob_name}, limit=50)
            thread = await client.read_resource("relay://thread/t%2F1")
            assert "> hello" in str(getattr(thread.contents[0], "text", ""))

    asyncio.run(scene())


def test_votes_and_results_are_handed_in(server: Server) -> None:
    async def scene() -> None:
        async with connected(server) as client, server.daemon.connect("Chief") as chief:
            await call(client, "relay_join", channel="votes")  # the owner is known from here on
            proposal = await chief.propose("Use SQLite", [ME])
            said = await call(client, "relay_vote", proposal=proposal.info.proposal_id, choice="approve")
            assert "It is approved" in said
            task = await chief.ask(ME, "count the files", 60, thread="task-http")
            assert "task-http" in await call(client, "relay_result", task="task-http", value="3")
            assert (await chief.answer_to(task, DEADLINE_S)).body == "3"
            again = await client.call_tool("relay_result", {"task": "task-http", "value": "4"})
            assert "first one counts" in str(getattr(again.content[0], "text", ""))

    asyncio.run(scene())


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
def test_subscribers_hear_of_new_messages(server: Server) -> None:
    async def scene() -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()

        async def note(message: Any) -> None:
            uri = getattr(getattr(message, "params", None), "uri", None)
            if uri is not None:
                heard.put_nowait(str(uri))

        async with connected(server, "legacy", message_handler=note) as client, server.daemon.connect("Crier") as crier:
            await client.subscribe_resource("relay://inbox")
            while heard.empty():  # until the client's stream is open, which it does not tell
                await crier.send(ME, "news")
                await asyncio.sleep(0.1)
            assert await heard.get() == "relay://inbox"

    asyncio.run(scene())


def test_a_session_outlives_the_daemon(start_server: StartServer) -> None:
    server = start_server()
    first = post(server.http, "initialize", HELLO)
    session = {"mcp-session-id": first.headers["mcp-session-id"]}
    server.daemon.kill()
    again = Server(server.daemon.start())
    try:
        answer = post(again.http, "tools/list", headers=session)
        assert len(answer.json()["result"]["tools"]) == len(TOOLS)
        assert again.http.delete("/mcp", headers=session).status_code == 204
    finally:
        again.close()


def test_only_the_owner_comes_in(server: Server) -> None:
    for method in ("POST", "GET", "DELETE"):
        assert server.bare.request(method, "/mcp", json={}).status_code == 401
    assert post(server.bare, "ping", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert post(server.http, "ping", headers={"host": "evil.example"}).status_code == 403
    assert post(server.http, "ping", headers={"origin": "https://evil.example"}).status_code == 403
    assert server.http.post("/mcp", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415


def test_versions_are_negotiated(http: httpx.Client) -> None:
    newer = post(http, "initialize", HELLO | {"protocolVersion": "2099-01-01"})
    assert newer.json()["result"]["protocolVersion"] == "2025-11-25"
    refused = post(http, "server/discover", {}, {"mcp-protocol-version": "2026-07-28"})
    assert refused.status_code == 400
    assert "2025-06-18" in refused.json()["error"]["data"]["supported"]


def test_what_is_no_request_is_accepted_and_not_answered(http: httpx.Client) -> None:
    for message in ({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 4, "result": {}}):
        answer = http.post("/mcp", json=message)
        assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
     b'{"jsonrpc":"2.0","id":1,"method":5}', b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', b"[" * 100_000,
     b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"relay_send","arguments":{"to":"A","text":"\\ud800"}}}'],
)  # fmt: skip
def test_bodies_that_are_no_messages_are_refused(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/mcp", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("relay_send", {"to": "../../x", "text": "x"}, "cannot be an agent's name"),
        ("relay_send", {"to": "Nobody-here", "text": "x"}, "relay_agents"),
        ("relay_send", {"to": "A\x1b[2J", "text": "x"}, "cannot be an agent's name"),
        ("relay_send", {"to": "A", "text": "x", "from": "Eve"}, "There is no argument 'from'"),
        ("relay_send", {"to": ["A"], "text": "x"}, "must be text"),
        ("relay_ask", {"to": "A", "text": "x", "seconds": -1}, "`seconds` must be"),
        ("relay_spawn", {"name": "a/b", "cli": "claude"}, "cannot be an agent's name"),
        ("relay_spawn", {"name": "Fine", "cli": "/bin/sh"}, "may not be started"),
        ("relay_join", {"channel": "a/../b"}, "is not a channel"),
        ("relay_release", {"name": "Nobody-here"}, "Nobody-here"),
        ("relay_reply", {"id": "00000000", "text": "x"}, "There is no message"),
        ("relay_history", {"limit": 10**6}, "`limit` must be"),
        ("relay_nothing", {}, "There is no tool"),
    ],
)
def test_hostile_arguments_are_refused_with_a_reason(http: httpx.Client, tool: str, arguments: dict[str, Any], says: str) -> None:
    result = call_by_hand(http, tool, arguments)["result"]
    assert result["isError"]
    assert says in result["content"][0]["text"]
    assert result["content"][0]["text"].isprintable()


def test_calls_of_the_wrong_shape_are_refused(http: httpx.Client) -> None:
    assert call_by_hand(http, 5, {})["error"]["code"] == -32602
    assert call_by_hand(http, "relay_agents", [])["result"]["isError"] is False  # an empty list says as little as nothing
    assert call_by_hand(http, "relay_agents", [1])["error"]["code"] == -32602
    assert post(http, "resources/read", {"uri": "file:///etc/passwd"}).json()["error"]["code"] == -32602
    assert post(http, "resources/subscribe", {"uri": 5}).json()["error"]["code"] == -32602
    assert post(http, "sampling/createMessage").json()["error"]["code"] == -32601
    assert http.get("/mcp").status_code == 422
