"""What is wrong with a request is said in a sentence that names the field."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.transports.http.request_fields import read_body, read_query
from agent_relay.transports.http.route import Route
from agent_relay.transports.http.table import ROUTES


def find(method: str, path: str) -> Route:
    (route,) = [each for each in ROUTES if (each.method, each.path) == (method, path)]
    return route


SEND, BUDGET = find("POST", "/api/v1/messages"), find("POST", "/api/v1/costs/budget")
STREAM, OUTPUT = find("GET", "/api/v1/events/sse"), find("GET", "/api/v1/agents/{name}/output")


@pytest.mark.parametrize(
    ("route", "body", "field", "sentence"),
    [
        (SEND, b'{"to": "Bob"}', "body", "`body` is missing."),
        (SEND, b'{"to": "Bob", "body": 1}', "body", "`body` must be text, not a whole number."),
        (SEND, b'{"to": "Bob", "body": ""}', "body", "`body` must be text of length >= 1."),
        (SEND, b'{"to": "Bob", "body": "x", "thread": []}', "thread", "`thread` must be text or null, not a list."),
        (SEND, b'{"to": "Bob", "body": "x", "kind": "No"}', "kind", "`kind` has an invalid format."),
        (SEND, b"[]", "body", "In the body: it must be an object, not a list."),
        (SEND, b"", "body", "The body is missing; it must be a JSON object."),
        (BUDGET, b'{"action": "sing"}', "action", "`action` must be one of alert, pause-spawning, stop-all."),
        (BUDGET, b'{"maxTotal": 0}', "maxTotal", "`maxTotal` must be a number > 0.0."),
    ],
)
def test_bodies(route: Route, body: bytes, field: str, sentence: str) -> None:
    with pytest.raises(RelayError) as wrong:
        read_body(route, body)
    assert (wrong.value.code, wrong.value.message, wrong.value.details) == (ErrorCode.INVALID_FORMAT, sentence, {"field": field})


@pytest.mark.parametrize(
    ("route", "query", "field", "sentence"),
    [
        (OUTPUT, b"lines=x", "lines", "`lines` must be a whole number, not text."),
        (OUTPUT, b"lines=0", "lines", "`lines` must be a whole number >= 1."),
        (OUTPUT, b"lines=1&lines=1", "lines", "`lines` was given twice."),
        (
            STREAM, b"types=nothing", "types",
            "`types` has an invalid format: Event types, separated by commas; `item.*` matches all of them.",
        ),
    ],
)  # fmt: skip
def test_queries(route: Route, query: bytes, field: str, sentence: str) -> None:
    with pytest.raises(RelayError) as wrong:
        read_query(route, query)
    assert (wrong.value.message, wrong.value.details) == (sentence, {"field": field})


def test_a_parameter_that_the_route_does_not_know_is_refused_and_the_others_named() -> None:
    with pytest.raises(RelayError) as refused:
        read_query(OUTPUT, b"lines=7&offset=3")
    assert refused.value.details == {"field": "offset"}
    assert refused.value.message == "Unknown query parameter 'offset'; this route takes lines."
    with pytest.raises(RelayError, match="takes none"):
        read_query(Route("POST", "/x", cast("Any", None), "", ""), b"x=1")
    assert read_query(Route("GET", "/health", cast("Any", None), "", "", is_open=True), b"x=1") is None


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert read_body(SEND, b'{"to": "Bob", "body": "x", "await_ms": 5.0}').await_ms == 5


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if not route.is_flat and route.method != "GET"], ids=lambda r: r.path
)
def test_a_field_that_the_route_does_not_know_is_refused_and_named(route: Route) -> None:
    with pytest.raises(RelayError) as wrong:
        read_body(route, b'{"frobnicate": 1}')
    assert wrong.value.code is ErrorCode.INVALID_FORMAT
    if route.body is None:
        assert wrong.value.details == {"field": "frobnicate"}
        assert read_body(route, b" ") is read_body(route, b"{}") is None


def test_the_unknown_field_is_named_with_those_there_are() -> None:
    with pytest.raises(RelayError) as wrong:
        read_body(SEND, b'{"to": "Bob", "body": "x", "prio": 1}')
    assert wrong.value.details == {"field": "prio"}
    assert wrong.value.message.startswith("There is no field 'prio' here; known fields: body, to, kind, ")
