"""Addresses as they come over the wire, odd ones included: which route each reaches, and what the others are told.

Asked with bare sockets: a client library would tidy the address up first.
"""

from __future__ import annotations

import json
import socket

import httpx
import pytest

from .server import Server

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "FOO", "get")
# What GET, HEAD, OPTIONS, POST and DELETE are answered at each, and the `Allow` of a 405. PUT, PATCH, TRACE, FOO and get are
# answered as HEAD is, which no route has either.
TABLE: tuple[tuple[str, int, int, int, int, int, str | None], ...] = (
    ("/", 200, 405, 405, 405, 405, "GET"),
    ("//", 200, 405, 404, 405, 405, ""),
    ("health", 200, 405, 404, 405, 405, ""),
    ("/health", 200, 405, 405, 405, 405, "GET"),
    ("/health/", 200, 405, 404, 405, 405, ""),
    ("/health?x=1", 200, 405, 405, 405, 405, "GET"),
    ("/ready//", 200, 405, 404, 405, 405, ""),
    ("/api", 404, 404, 404, 404, 404, None),
    ("/api/v1/", 404, 404, 404, 404, 404, None),
    ("/api/v1/nothing", 404, 404, 404, 404, 404, None),
    ("/api/v2/agents", 404, 404, 404, 404, 404, None),
    ("/API/V1/AGENTS", 404, 404, 404, 404, 404, None),
    ("/schema", 404, 404, 404, 404, 404, None),
    ("*", 404, 404, 404, 404, 404, None),
    ("http://127.0.0.1/health", 404, 404, 404, 404, 404, None),
    ("/api/v1/agents", 200, 405, 405, 405, 405, "GET"),
    ("/api/v1/agents?", 200, 405, 405, 405, 405, "GET"),
    ("/api/v1/agents?x=1", 422, 405, 405, 405, 405, "GET"),
    ("/api/v1/agents#x", 404, 404, 404, 404, 404, None),
    ("/api/v1/agents/", 200, 405, 404, 405, 405, ""),
    ("//api/v1//agents//", 200, 405, 404, 405, 405, ""),
    ("/api/v1/./agents", 404, 404, 404, 404, 404, None),
    ("/api/v1/agents/../agents", 404, 404, 404, 404, 404, None),
    ("/api/v1/agents/a%2Fb", 404, 404, 404, 404, 404, None),
    ("/api/v1/messages", 200, 405, 405, 422, 405, "GET, POST"),
    ("/api/v1/messages/", 200, 405, 404, 422, 405, ""),
    ("/api/v1/messages/x/nothing", 404, 404, 404, 404, 404, None),
    ("/api/v1/sessions/x", 404, 405, 405, 405, 404, "DELETE, GET"),
    ("/api/v1/channels/%23paths/join", 405, 405, 405, 200, 405, "POST"),
    ("/api/v1/channels/%2523paths/join", 405, 405, 405, 422, 405, "POST"),
    ("/api/v1/agents/x/permissions/a%2Fb/approve", 404, 404, 404, 404, 404, None),
    ("/api/v1/agents/x/permissions//approve", 404, 404, 404, 404, 404, None),
    ("/agents/by-name/x/interrupt", 405, 405, 405, 404, 405, "POST"),
    ("/agents/by-name/interrupt", 404, 404, 405, 404, 404, "POST"),  # `by-name` is no id, though OPTIONS takes it for one
    ("/agents/by-name", 404, 404, 405, 404, 404, "DELETE, GET"),
    ("/static", 404, 404, 404, 404, 404, None),
    ("/static/", 404, 404, 404, 404, 404, None),
    ("/static//", 404, 404, 405, 404, 404, "GET"),
    ("/static/app.js", 200, 405, 405, 405, 405, "GET"),
    ("/static/app.js/", 200, 405, 405, 405, 405, "GET"),
    ("/static//app.js", 200, 405, 405, 405, 405, "GET"),
    ("/static%2Fapp.js", 200, 405, 405, 405, 405, "GET"),
    ("/static/../app.js", 404, 405, 405, 405, 405, "GET"),
    ("/static/..%2fapp.js", 404, 405, 405, 405, 405, "GET"),
    ("/static/a/b/c", 404, 405, 405, 405, 405, "GET"),
    ("/arc/", 426, 405, 404, 405, 405, ""),
    ("/token", 404, 404, 404, 404, 404, None),
)
# The name that a route is given at each.
NAMES = {
    "/api/v1/agents/nobody": "nobody",
    "/api/v1/agents/nobody/": "nobody",
    "/api/v1/agents//screen": "screen",
    "/api/v1/agents/nob%6Fdy/screen": "nobody",
    "/api/v1/agents/nobody%2Fscreen": "nobody",
    "/api/v1/agents/nobody//screen": "nobody",
    "/api/v1/agents/.": ".",
    "/api/v1/agents/..": "..",
    "/api/v1/agents/%2e%2e/screen": "..",
    "/api/v1/agents/%20": " ",
    "/api/v1/agents/%00": "\0",
    "/api/v1/agents/a%0d%0ab": "a\r\nb",
    "/api/v1/agents/%C3%A4": "ä",
    "/api/v1/agents/%ff": "\ufffd",
    "/api/v1/agents/a;b": "a;b",
    "/api/v1/agents/a+b": "a+b",
    "/api/v1/agents/%25": "%",
    "/api/v1/agents/%zz": "%zz",
    "/api/v1/agents/{name}": "{name}",
}


def ask(server: Server, method: str, target: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body."""
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port or 0), 60) as line:
        head = [f"{method} {target} HTTP/1.1", f"Host: {address.host}:{address.port}", "Connection: close"]
        head += [f"{name}: {value}" for name, value in server.daemon.api_headers.items()]
        line.sendall("\r\n".join([*head, "Content-Length: 0", "", ""]).encode())
        said = b""
        while chunk := line.recv(65_536):
            said += chunk
    first, *lines = said.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) if ": " in line else (line.lower().rstrip(":"), "") for line in lines)
    return int(first.split()[1]), headers, said.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_each_address_has_its_methods(server: Server, row: tuple[str, int, int, int, int, int, str | None]) -> None:
    target, get, head, options, post, delete, allow = row
    others = dict.fromkeys(METHODS, head) | {"GET": get, "OPTIONS": options, "POST": post, "DELETE": delete}
    for method, status in others.items():
        found, headers, body = ask(server, method, target)
        assert found == status, method
        assert headers.get("allow") == (None if found != 405 or allow is None else allow.lower()), method
        assert bool(body) is (method != "HEAD")
        if found in {404, 405} and body:
            said = json.loads(body)["error"]
            assert said["code"] in {"ROUTE_NOT_FOUND", "AGENT_NOT_FOUND"}
            assert headers["content-type"] == "application/json"
            assert headers["content-length"] == str(len(body))


@pytest.mark.parametrize("target", NAMES)
def test_names_are_read_from_the_decoded_path(server: Server, target: str) -> None:
    status, _, body = ask(server, "GET", target)
    assert (status, json.loads(body)["error"]["details"]) == (404, {"name": NAMES[target]})


def test_errors_of_arc_are_flat_at_their_own_address_only(server: Server) -> None:
    status, headers, body = ask(server, "PUT", "/register")
    assert (status, headers["allow"]) == (405, "delete, post")
    assert json.loads(body) == {"error": "method_not_allowed", "message": "That address does not support this method."}
    assert json.loads(ask(server, "PUT", "/register/")[2])["error"]["code"] == "ROUTE_NOT_FOUND"


def test_text_says_that_it_is_utf_8_and_an_unchanged_file_is_not_sent_again(server: Server) -> None:
    assert ask(server, "GET", "/")[1]["content-type"] == "text/html; charset=utf-8"
    assert ask(server, "GET", "/metrics")[1]["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert ask(server, "GET", "/static/app.js")[1]["content-type"].startswith("text/javascript; charset=utf-8")
    etag = server.http.get("/static/app.js").headers["etag"]
    again = server.http.get("/static/app.js", headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert "content-length" not in again.headers
