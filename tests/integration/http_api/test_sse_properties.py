"""Streams against a model: whatever of the past is asked for, exactly that comes, and then what happens next; whatever is no
question is refused. Schemathesis cannot read what does not end, so this is done here, with the description as the judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agent_relay.transports.http.openapi import describe
from agent_relay.transports.http.table import ROUTES

from .server import Server, until
from .streams import Stream, run

SCOPES = ("/api/v1/events/sse", "/api/v1/agents/{agent}/events/sse", "/api/v1/sessions/{session}/events/sse")
TYPES = ("message.exchanged", "message.delivered", "agent.state", "permission.*", "message.*", "*", "consensus.proposed")
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PARAMETERS = describe(ROUTES)["paths"][SCOPES[0]]["get"]["parameters"]
WORDS = st.one_of(
    st.text(max_size=30), st.integers().map(str), st.lists(st.sampled_from(TYPES)).map(",".join), st.floats().map(str),
    st.sampled_from(["", "0", "-0", "+1", "1e3", " 1", "1 ", "٣", "9007199254740991", "9007199254740992", "null", "item.*,"]),
)  # fmt: skip


@pytest.fixture(scope="module")
def past(server: Server) -> list[dict[str, Any]]:
    """Everything that was recorded: the talk of two agents, and what one of them asked."""
    alice, bob = server.join("Alice"), server.wrap("Bob")
    for number in range(10):
        alice.send("Bob", f"{number}")
        bob.client.send("Alice", f"re: {number}")
    bob.ask_permission("p1")
    until(lambda: any(event["type"] == "permission.requested" for event in events(server)), "it is recorded")
    return events(server)


def events(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.http.get("/api/v1/events", params={"limit": 1000}).json()["events"]
    return found


def is_wanted(event: dict[str, Any], types: list[str]) -> bool:
    kind = event["type"]
    return not types or any(each in {kind, "*", f"{kind.partition('.')[0]}.*"} for each in types)


def is_of(event: dict[str, Any], scope: str, session: str) -> bool:
    if "{agent}" in scope:
        return "Bob" in {event["_agentName"], event.get("from"), event.get("to")}
    return "{session}" not in scope or event["_sessionId"] == session


@FEW
@given(
    scope=st.sampled_from(SCOPES), types=st.lists(st.sampled_from(TYPES), max_size=3), place=st.floats(0, 1),
    by=st.sampled_from(["offset", "since", "Last-Event-ID"]),
)  # fmt: skip
def test_a_stream_is_what_was_and_then_what_comes(
    server: Server, past: list[dict[str, Any]], scope: str, types: list[str], place: float, by: str
) -> None:
    session = server.agent("Bob")["sessionId"]
    now = events(server)
    begin = now[int(place * (len(now) - 1))]
    value = begin["_ts"] if by == "since" else begin["_seq"]
    later = [event for event in now if (event["_ts"] >= value if by == "since" else event["_seq"] > value)]
    expected = [event for event in later if is_wanted(event, types) and is_of(event, scope, session)]
    query = f"&types={','.join(types)}" if types else ""
    where = f"{scope.format(agent='bob', session=session)}?{query.lstrip('&')}"
    headers = {by: str(value)} if by == "Last-Event-ID" else {}
    where += "" if headers else f"&{by}={value}"
    next_: dict[str, Any] = {"type": "message.exchanged", "_agentName": "Bob", "_sessionId": session}
    is_told = is_wanted(next_, types)

    async def play() -> None:
        stream = await Stream(server).open(where, **headers)
        assert stream.status == 200
        if is_told:
            bob = next(each for each in server.agents if each.name == "Bob")
            await asyncio.to_thread(bob.send, "Alice", f"after {len(now)}")
        found = [event.data for event in await stream.take(len(expected) + is_told)] if expected or is_told else []
        assert found[: len(expected)] == expected
        if is_told:
            assert found[-1]["body"] == f"after {len(now)}"

    run(play)


@FEW
@given(name=st.sampled_from([each["name"] for each in PARAMETERS]), word=WORDS)
def test_a_stream_is_opened_for_what_the_description_allows_and_else_refused(server: Server, name: str, word: str) -> None:
    (parameter,) = [each for each in PARAMETERS if each["name"] == name]
    judge = Draft202012Validator(parameter["schema"])
    is_number = parameter["schema"].get("type") == "integer"
    said: Any = int(word) if is_number and word.isascii() and word.lstrip("-").isdigit() else word
    if parameter["in"] == "header" and (not word.isascii() or not word.isprintable() or word != word.strip()):
        return  # cannot be sent so
    sent: dict[str, Any] = {"headers": {name: word}} if parameter["in"] == "header" else {"params": {name: word}}
    with server.http.stream("GET", SCOPES[0], **sent) as answer:
        if judge.is_valid(said):
            assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
            assert next(answer.iter_lines()) == ": events follow"
        else:
            answer.read()
            assert (answer.status_code, answer.json()["error"]["code"]) == (422, "INVALID_FORMAT")
            assert answer.json()["error"]["details"]["field"] == name
