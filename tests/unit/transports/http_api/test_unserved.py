"""HTTP that nobody can serve now: the reason, in the shape that whoever asks expects."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Awaitable, Callable

from agent_relay.ports.cluster import EdgeHttp
from agent_relay.transports.http.unserved import UnservedProtocol

REASON = "No host has the <seat>."
Ask = Callable[[bytes], Awaitable[tuple[int, dict[str, str], bytes]]]


def serve(act: Callable[[Ask], Awaitable[None]]) -> None:
    """Real connections: what a client gets when it writes everything first and then reads to the end."""

    async def main() -> None:
        bound = EdgeHttp("127.0.0.1", 0, "http", None, frozenset(), "c", {})

        def protocol() -> UnservedProtocol:
            return UnservedProtocol(EdgeHttp("127.0.0.1", port, "http", *rest), lambda: REASON, lambda: 42)

        rest = (bound.token_hash, bound.origins, bound.cookie, bound.keys)
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def ask(words: bytes) -> tuple[int, dict[str, str], bytes]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(words.replace(b"HERE", f"127.0.0.1:{port}".encode()))
            said = await reader.read()
            writer.close()
            if not said:
                return 0, {}, b""
            head, _, body = said.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body

        async with asyncio.timeout(120):
            await act(ask)
        server.close()

    asyncio.run(main())


def test_a_program_gets_the_usual_error() -> None:
    async def act(ask: Ask) -> None:
        body = b"x" * 1_000_000  # to the last byte: to close before would take the answer away
        head = b"POST /api/v1/messages HTTP/1.1\r\nHost: HERE\r\nContent-Length: %d\r\n\r\n" % len(body)
        status, headers, said = await ask(head + body)
        assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
        error = json.loads(said)["error"]
        assert (error["code"], error["message"], error["retryable"]) == ("SERVICE_UNAVAILABLE", REASON, True)

    serve(act)


def test_a_browser_gets_a_page_and_an_arc_agent_the_flat_form() -> None:
    async def act(ask: Ask) -> None:
        status, headers, said = await ask(b"GET / HTTP/1.1\r\nHost: HERE\r\nAccept: text/html,*/*\r\n\r\n")
        assert (status, headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert b"No host has the &lt;seat&gt;." in said
        script = re.findall(b"<script>(.*)</script>", said)[0]
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" in headers["content-security-policy"]
        for path in (b"/arc?token=x", b"/register", b"/token/refresh"):
            status, _, said = await ask(b"GET " + path + b" HTTP/1.1\r\nHost: HERE\r\n\r\n")
            assert (status, json.loads(said)) == (503, {"error": "unavailable", "message": REASON})

    serve(act)


def test_the_process_itself_is_well() -> None:
    async def act(ask: Ask) -> None:
        status, _, said = await ask(b"GET /health?x=1 HTTP/1.1\r\nHost: HERE\r\n\r\n")
        assert (status, json.loads(said)["uptimeMs"]) == (200, 42)
        status, headers, rest = await ask(b"HEAD /health HTTP/1.1\r\nHost: HERE\r\n\r\n")
        assert (status, headers["content-length"], rest) == (200, str(len(said)), b"")

    serve(act)


def test_a_foreign_host_learns_nothing() -> None:
    async def act(ask: Ask) -> None:
        for host in (b"example.com", b"127.0.0.1:1", b""):
            status, _, said = await ask(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
            assert status == 403
            assert b"seat" not in said

    serve(act)


def test_whoever_waits_before_sending_a_body_is_told_at_once_and_nonsense_is_hung_up_on() -> None:
    async def act(ask: Ask) -> None:
        head = b"POST / HTTP/1.1\r\nHost: HERE\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        assert (await ask(head))[0] == 503
        assert (await ask(b"nonsense\r\n\r\n"))[0] == 0

    serve(act)
