"""Bad input on every route there is: the cases are made of the table and of the description, so that a new route is covered by
itself. Whatever comes, the answer is an error of the one shape that says what is wrong, and never a failure of the server's."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.transports.http.openapi import describe
from agent_relay.transports.http.route import JSON, SSE, Route
from agent_relay.transports.http.table import ROUTES as ALL_ROUTES

from .server import ME, SMALL_MESSAGE, UNKNOWN, Server, problem

TOKEN = "Geheim-42"
SMALL = 8_192
TYPES = {"Content-Type": JSON}
WRONG: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**40, "", " ", "\0", "../x", "a\nb", "1; rm -rf /", "ä" * 300, "x" * 5_000, [], [None], {},
    {"a": [1]},
)  # fmt: skip
TRICKS = (
    "..", ".", "%2e%2e", "..%2f..%2f..%2fetc%2fpasswd", "%00", "a%0d%0aX-Evil:%201", "*", "%23x", "%ff%fe", "a%20b",
    "%F0%9F%98%80", "a;b", "a%5c..%5cb", "-rf", "x" * 5_000, "%E2%80%AEevil", "%7B%7D", "http", "~", "con", "%2525",
)  # fmt: skip
ROUTES = tuple(route for route in ALL_ROUTES if not route.is_flat)  # ARC's have a shape of their own: tests/integration/arc
DESCRIPTION = describe(ROUTES)
every_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
each_with_a_body = pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.body is not None], ids=lambda route: f"{route.method} {route.path}"
)
each_with_a_query = pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.query is not None], ids=lambda route: f"{route.method} {route.path}"
)
each_that_acts = pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.method != "GET"], ids=lambda route: f"{route.method} {route.path}"
)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """With a token, and small limits."""
    daemon = DaemonProcess("--port=0", f"--max-frame-bytes={SMALL}")
    daemon.environ = {"AGENT_RELAY_API_TOKEN": TOKEN}
    with daemon:
        found = Server(daemon)
        yield found
        found.close()


@pytest.fixture(scope="module", autouse=True)
def nothing_failed(server: Server, guarded: Server) -> Iterator[None]:
    yield
    for each in (server, guarded):
        assert each.http.get("/health").status_code == 200
        assert "http_failed" not in (each.daemon.state_dir / "daemon.log").read_text()


def fill(route: Route, name: str = UNKNOWN) -> str:
    return re.sub(r"{\w+}", name, route.path)


def ask(server: Server, route: Route, **more: Any) -> httpx.Response:
    """The answer; of a stream only its beginning, since it does not end."""
    with server.http.stream(route.method, more.pop("path", fill(route)), **more) as answer:
        if answer.headers.get("content-type") != SSE:
            answer.read()
        return answer


def is_fine(answer: httpx.Response) -> bool:
    """Good, or refused in the one shape and for a reason that a client can do something about."""
    return answer.status_code < 400 or problem(answer)[0] < 500 or answer.status_code in {503, 504}


def schema_of(part: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(part | {"components": DESCRIPTION["components"]})


def operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = DESCRIPTION["paths"][route.path][route.method.lower()]
    return found


# --- who asks ----------------------------------------------------------------------------------------------------------


@every_route
def test_a_foreign_host_or_page_gets_nothing(server: Server, route: Route) -> None:
    port = httpx.URL(server.url).port
    for headers in (
        {"Host": "evil.example"},
        {"Host": f"evil.example:{port}"},
        {"Host": f"127.0.0.1.evil.example:{port}"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{port}.evil.example"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        assert problem(ask(server, route, headers=headers)) == (403, "PERMISSION_DENIED"), headers


@every_route
def test_the_token_must_be_the_token(guarded: Server, route: Route) -> None:
    wrong = ("", "Bearer", f"Bearer {TOKEN.lower()}", f"Bearer {TOKEN.upper()}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN)
    for said in wrong:
        answer = ask(guarded, route, headers={"Authorization": said})
        if route.is_open:
            assert is_fine(answer)
            assert answer.status_code != 401
        else:
            assert problem(answer) == (401, "PERMISSION_DENIED"), said
    assert ask(guarded, route, headers={"Authorization": f"Bearer {TOKEN}"}).status_code not in {401, 403, 500}


@every_route
def test_other_methods_are_refused(server: Server, route: Route) -> None:
    own = {each.method for each in ROUTES if each.path == route.path}
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "HEAD", "BREW"} - own:
        answer = server.http.request(method, fill(route))
        assert answer.status_code in {404, 405}, method


# --- what is sent ------------------------------------------------------------------------------------------------------


@each_that_acts
def test_bodies_that_are_no_json(server: Server, route: Route) -> None:
    kinds = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "", "a/b/c")
    for kind in kinds:
        answer = ask(server, route, content=SMALL_MESSAGE, headers={"Content-Type": kind})
        assert problem(answer) == (415, "INVALID_FORMAT"), kind


@every_route
def test_bodies_that_are_too_large(guarded: Server, route: Route) -> None:
    headers = TYPES | {"Authorization": f"Bearer {TOKEN}"}
    large = json.dumps({"to": ME, "body": "x" * SMALL}).encode()
    assert problem(ask(guarded, route, content=large, headers=headers)) == (413, "MESSAGE_TOO_LARGE")
    claims = f"Authorization: Bearer {TOKEN}\r\nContent-Type: {JSON}\r\nContent-Length: {10**15}\r\n"
    assert raw(guarded, route.method, fill(route), claims)[0] == 413  # and none of it was waited for


@pytest.mark.parametrize("ends", ["Connection: close\r\n", ""])
def test_who_writes_all_of_a_large_body_before_reading_gets_the_answer(server: Server, ends: str) -> None:
    port, size = httpx.URL(server.url).port, 8 << 20  # more than the system's buffers hold
    head = f"POST /api/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {server.daemon.api_token}\r\n"
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(f"{head}{ends}Content-Type: {JSON}\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(8):
            connection.sendall(b"x" * (size // 8))
        answer = connection.makefile("rb")
        assert int(answer.readline().split()[1]) == 413
        lines = dict(line.split(b": ") for line in iter(lambda: answer.readline().strip(), b""))
        assert b"MESSAGE_TOO_LARGE" in answer.read(int(lines[b"content-length"]))


@each_with_a_body
def test_a_large_body_that_does_not_say_so(guarded: Server, route: Route) -> None:
    def parts() -> Iterator[bytes]:
        yield b'{"to":"'
        for _ in range(4):
            yield b"x" * (SMALL // 2)

    answer = ask(guarded, route, content=parts(), headers=TYPES | {"Authorization": f"Bearer {TOKEN}"})
    assert problem(answer) == (413, "MESSAGE_TOO_LARGE")


@each_with_a_body
def test_json_that_is_none(server: Server, route: Route) -> None:
    for content in (
        b"{", b"nonsense", b'"text"', b"[]", b"7", b"null", b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"a":' * 3_000, b"[" * 16_000,
        b'{"a":1e999}', b'{"a":"\\ud800"}', b"{}" * 2, b"\0",
    ):  # fmt: skip
        answer = ask(server, route, content=content, headers=TYPES)
        assert problem(answer) == (422, "INVALID_FORMAT"), content[:40]


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if route.body is not None and route.is_described],
    ids=lambda route: f"{route.method} {route.path}",
)  # fmt: skip
def test_fields_of_the_wrong_type_are_named(server: Server, route: Route) -> None:
    """What the description does not allow is refused for that field; what it does allow is no failure either."""
    reference = operation(route)["requestBody"]["content"][JSON]["schema"]
    schema = DESCRIPTION["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
    for name, part in schema["properties"].items():
        rest = {other: _example(schema["properties"][other]) for other in schema["required"] if other != name}
        for wrong in WRONG:
            answer = ask(server, route, json=rest | {name: wrong})
            assert is_fine(answer), (name, wrong)
            if not schema_of(part).is_valid(wrong):
                assert answer.status_code == 422, (name, wrong, answer.text)
                assert answer.json()["error"]["details"].get("field", name).startswith(name), (wrong, answer.text)


def _example(part: dict[str, Any]) -> Any:
    """Something that fits, and names nothing there is."""
    candidates = (UNKNOWN, f"/{UNKNOWN}", 1, [UNKNOWN], *part.get("enum", ()))
    found = next((value for value in candidates if schema_of(part).is_valid(value)), None)
    assert found is not None, part
    return found


@each_with_a_query
def test_queries_of_the_wrong_type_are_named(server: Server, route: Route) -> None:
    for parameter in (each for each in operation(route)["parameters"] if each["in"] == "query"):
        name, schema = parameter["name"], schema_of(parameter["schema"])
        values = [*(str(wrong) for wrong in WRONG), "1e3", "0x10", "9" * 19, "%", "item.*", "1"]
        for wrong in values:
            answer = ask(server, route, params={name: wrong})
            assert is_fine(answer), (name, wrong)
            if not schema.is_valid(wrong) and not (re.fullmatch("-?[0-9]+", wrong) and schema.is_valid(int(wrong))):
                assert problem(answer) == (422, "INVALID_FORMAT"), (name, wrong)
                assert answer.json()["error"]["details"]["field"] == name
        twice = ask(server, route, params=[(name, "1"), (name, "1")])
        assert (twice.status_code, twice.json()["error"]["details"]["field"]) == (422, name)
    assert problem(ask(server, route, path=f"{fill(route)}?" + "a=1&" * 200))[0] == 422
    assert problem(ask(server, route, path=f"{fill(route)}?a=%ff"))[0] == 422


# --- where it is sent to -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", [route for route in ROUTES if route.names], ids=lambda route: f"{route.method} {route.path}")
def test_tricks_with_names(server: Server, route: Route) -> None:
    """As they are written, over a plain socket: a library would tidy the path up."""
    body = "" if route.body is None else json.dumps(_whole_body(route))
    headers = f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\n" if body else ""
    for trick in TRICKS:
        status, head = raw(server, route.method, fill(route, trick), headers, body)
        assert status < 500 or status in {503, 504}, trick
        assert "x-evil" not in head.lower(), trick


def _whole_body(route: Route) -> dict[str, Any]:
    reference = operation(route)["requestBody"]["content"][JSON]["schema"]
    schema = DESCRIPTION["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
    return {name: _example(schema["properties"][name]) for name in schema["required"]}


def raw(server: Server, method: str, target: str, headers: str = "", body: str = "") -> tuple[int, str]:
    """The status and the head of the answer."""
    port = httpx.URL(server.url).port
    token = "" if "authorization:" in headers.lower() else f"Authorization: Bearer {server.daemon.api_token}\r\n"
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{token}{headers}\r\n"
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall((head + body).encode("latin-1"))
        answer = connection.makefile("rb")
        status = int(answer.readline().split()[1])
        lines = list(iter(lambda: answer.readline().strip(), b""))
    return status, b"\n".join(lines).decode("latin-1")


@pytest.mark.parametrize(
    "bytes_",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"POST /api/v1/messages HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    ],
    ids=lambda bytes_: repr(bytes_[:24]),
)
def test_what_is_no_http(server: Server, bytes_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", httpx.URL(server.url).port), 20) as connection:
        answer = b""
        with suppress(OSError):  # it need not listen to the end
            connection.sendall(bytes_)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65_536)
    assert answer == b"" or b" 40" in answer.partition(b"\r\n")[0]
    assert server.http.get("/health").status_code == 200
