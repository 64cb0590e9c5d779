"""The rest of ARC's rules, with Node.js and `ws`: limits, tokens, commands, who is away, and a relay that is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.arc_clients.node_client import Node

FREE = ("--port=0", "--arc-registrations-per-hour=0")
CERTIFICATES = Path(__file__).parents[2] / "data" / "tls"


@contextmanager
def running(*flags: str, **environ: str) -> Iterator[tuple[Node, DaemonProcess]]:
    with DaemonProcess(*FREE, *flags) as daemon, Node(daemon.wait_for_url(), daemon.api_token, **environ) as node:
        yield node, daemon


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Node, DaemonProcess]]:
    with running() as found:
        yield found


@pytest.fixture
def node(shared: tuple[Node, DaemonProcess]) -> Node:
    return shared[0]


@pytest.fixture
def trio(node: Node, request: pytest.FixtureRequest) -> Iterator[tuple[str, str, str]]:
    """Three agents that nobody else has talked to."""
    stem = request.node.name.removeprefix("test_").replace("_", "-").split("[")[0][:50]
    names = (f"{stem}-a", f"{stem}-b", f"{stem}-c")
    with ExitStack() as stack:
        for name in names:
            node.join(name)
            stack.callback(node.do, "close", name, code=1000)
        yield names


# --- registering and tokens --------------------------------------------------------------------------------------------------


def test_ids_that_are_reserved_held_or_gone_are_taken(shared: tuple[Node, DaemonProcess]) -> None:
    node, daemon = shared
    with daemon.connect_sync("Held-2"):
        pass
    _, token = node.register("gone-2")
    assert node.request("DELETE", "/register", token=token)["body"] == {"agent_id": "gone-2", "revoked": True}
    for taken in ("relay", "system", "held-2", "gone-2"):
        answer = node.try_to_register(f'{{"agent_id": "{taken}"}}')
        assert (answer["status"], answer["body"]["error"]) == (409, "agent_id_taken")
        assert answer["body"].keys() == {"error", "message"}


def test_an_address_registers_so_many_and_is_told_when_to_come_again() -> None:
    with running("--arc-registrations-per-hour=2") as (node, _):
        node.register()
        node.register()
        answer = node.try_to_register("{}")
        assert (answer["status"], answer["body"]["error"]) == (429, "rate_limit")
        assert 3_000 < int(answer["retry_after"]) <= 3_600


def test_an_address_that_guesses_is_told_to_wait_and_a_good_token_is_not() -> None:
    with running() as (node, _):
        _, token = node.register("good-token")
        assert [node.try_to_come(f"tok_guess{number}")["status"] for number in range(11)] == [401] * 10 + [429]
        assert 0 < int(node.try_to_come("tok_more")["retry_after"]) <= 60
        assert node.come("good-token", token)["to"] == ["good-token"]


def test_a_token_is_renewed_and_the_old_one_is_good_for_a_while(node: Node) -> None:
    name, first = node.register("renewed")
    second = node.request("POST", "/token/refresh", token=first)["body"]["token"]
    for token in (first, second):
        assert node.come(name, token)["payload"]["agent_id"] == name
    node.request("POST", "/token/refresh", token=second)
    assert node.try_to_come(first)["status"] == 401  # two behind
    assert node.request("POST", "/token/refresh", token="tok_nobodys")["status"] == 401


def test_a_token_that_expires_ends_the_connection() -> None:
    with running("--token-ttl=2s") as (node, _):
        token = node.join("brief-2")
        assert node.hear_frame("brief-2", type="error")["error"] == "token_expired"
        assert node.hear("brief-2", "close")["code"] == 4001
        assert node.try_to_come(token)["status"] == 401


# --- messages ----------------------------------------------------------------------------------------------------------------


def test_each_gets_a_message_once_and_who_names_itself_gets_it_too(node: Node, trio: tuple[str, str, str]) -> None:
    a, b, c = trio
    node.say(a, ["*", b, b, c], 1)
    node.say(a, [b, b, a, "no-such-agent"], None)
    node.say(a, [b], 3)
    assert node.hear_payloads(b, 3) == [1, None, 3]
    assert node.hear_payloads(a, 1) == [None]
    node.say(b, [c], 4)
    assert node.hear_payloads(c, 2) == [1, 4]


def test_the_relay_wins_and_an_unknown_target_is_passed_over_in_silence(node: Node, trio: tuple[str, str, str]) -> None:
    a, b, _ = trio
    node.do("say", a, frame=f'{{"to": ["*", "{b}", "relay"], "type": "ping", "ref": 1}}')
    assert node.hear_frame(a, ref=1)["type"] == "pong"
    node.say(a, ["no-such-agent"], "nobody")
    node.say(a, [a, b], "next")
    assert node.hear_payloads(a, 1) == node.hear_payloads(b, 1) == ["next"]


def test_a_receipt_names_who_has_it_and_who_is_not_known(node: Node, trio: tuple[str, str, str]) -> None:
    a, b, _ = trio
    node.say(a, [b, "no-such-agent"], "asked", receipt=True, ref="mine")
    receipt = node.hear_frame(a, type="receipt")
    assert (receipt["ref"], receipt["payload"]["stored"], receipt["payload"]["unknown"]) == ("mine", [b], ["no-such-agent"])
    assert node.hear_frame(b, payload="asked")["id"] == receipt["payload"]["id"]


def test_what_was_not_shown_to_be_read_comes_again(node: Node, trio: tuple[str, str, str]) -> None:
    name, token = node.register("unread-2")
    node.come("mute", token, answersPings=False)
    for number in range(5):
        node.say(trio[0], [name], number)
    first = [node.hear("mute", "message")["frame"] for _ in range(5)]
    node.come("heard", token)
    again = [node.hear("heard", "message")["frame"] for _ in range(5)]
    assert [frame["payload"] for frame in again] == list(range(5))
    assert [frame["id"] for frame in again] == [frame["id"] for frame in first]


def test_the_newer_connection_stays_when_the_older_one_ends(node: Node) -> None:
    name, token = node.register("twice-2")
    node.come("older", token)
    node.come("newer", token)
    assert node.hear("older", "close")["code"] == 4000
    node.say("newer", [name], "still here")
    assert node.hear_frame("newer", payload="still here")["from"] == name


def test_what_came_while_it_was_away_follows_in_order_with_its_time(node: Node, trio: tuple[str, str, str]) -> None:
    a, b, _ = trio
    name, token = node.register("away-2")
    for number in range(10):
        node.say(a, [name, b], number)
    live = [node.hear(b, "message")["frame"] for _ in range(10)]
    node.come(name, token)
    stored = [node.hear(name, "message")["frame"] for _ in range(10)]
    assert [(one["id"], one["ts"], one["payload"]) for one in stored] == [(one["id"], one["ts"], one["payload"]) for one in live]
    assert all(one["stored"] is True for one in stored)
    node.say(a, [name], "live")
    assert "stored" not in node.hear_frame(name, payload="live")


def test_an_ephemeral_relay_keeps_nothing() -> None:
    with running("--arc-ephemeral") as (node, _):
        node.join("speaker-2")
        name, token = node.register("away-3")
        node.say("speaker-2", [name, "speaker-2"], "gone")
        node.hear_frame("speaker-2", payload="gone")
        assert "offline" not in node.come(name, token)["capabilities"]
        node.say("speaker-2", [name], "here")
        assert node.hear_payloads(name, 1) == ["here"]


def test_between_the_two_kinds_of_agents(shared: tuple[Node, DaemonProcess], trio: tuple[str, str, str]) -> None:
    node, daemon = shared
    a, b, _ = trio
    assert node.ask(a, "subscribe", {"agents": ["Sock-2"]})["payload"]["count"] == 1
    with daemon.connect_sync("Sock-2") as sock:
        node.say(a, ["sock-2"], {"n": 1}, type="offer")
        found = sock.messages().receive(20)
        found.ack()
        assert (found.body, found.data, found.payload["arc"]) == ('{"n":1}', {"n": 1}, {"type": "offer"})
        receipt = sock.send(b, "hello", data={"n": 7})
        got = node.hear_frame(b, id=receipt.message_id)
        assert (got["from"], got["payload"]) == ("Sock-2", {"body": "hello", "data": {"n": 7}})
        sock.publish("build.done", "green")
        got = node.hear_frame(a, topic="build.done")
        assert (got["payload"], got["to"]) == ("green", [a])
    assert node.heard_nothing(b, topic="build.done")


# --- commands ----------------------------------------------------------------------------------------------------------------


def test_commands_and_their_answers(node: Node, trio: tuple[str, str, str]) -> None:
    a, *_ = trio
    pong = node.ask(a, "ping")
    assert pong.keys() == {"id", "from", "to", "type", "payload", "ts", "ref"}
    assert (pong["from"], pong["to"]) == ("relay", [a])
    assert node.ask(a, "subscribe", {"agents": ["zoe-1", "bob-1"]})["payload"] == {"agents": ["bob-1", "zoe-1"], "count": 2}
    assert node.ask(a, "subscribe", {"subscribe_to": ["amy-1"]})["payload"]["count"] == 3
    left = node.ask(a, "unsubscribe", {"agents": ["bob-1"]})
    assert (left["type"], left["payload"]) == ("unsubscribed", {"agents": ["amy-1", "zoe-1"], "count": 2})
    listed = node.ask(a, "list_subscriptions")
    assert (listed["type"], listed["payload"]) == ("subscriptions", {"agents": ["amy-1", "zoe-1"]})
    for kind, payload, code in (
        ("nonsense", {}, "unknown_type"), ("subscribe", {"agents": "x"}, "invalid_message"),
        ("command", {"command": "nonsense"}, "unknown_type"), ("command", {"command": "search"}, "invalid_message"),
    ):  # fmt: skip
        refused = node.ask(a, kind, payload)
        assert (refused["error"], refused["payload"]["code"]) == (code, code)


def test_history_search_and_replay_are_ones_own_and_what_was_said_to_all(node: Node, trio: tuple[str, str, str]) -> None:
    a, b, c = trio
    for to, text in (([b], "first plum"), (["*"], "second plum"), ([b], "third plum")):
        node.say(a, to, text)
    first = node.hear_frame(b, payload="first plum")["id"]
    node.hear_frame(b, payload="third plum")
    node.hear_frame(c, payload="second plum")

    def look(name: str, command: str, **more: Any) -> list[Any]:
        answer = node.ask(name, "command", {"command": command, **more})
        assert (answer["type"], answer["payload"]["command"]) == ("command_result", command)
        return [one["payload"] for one in answer["payload"]["messages"] if "plum" in str(one["payload"])]

    assert look(b, "history", limit=3) == ["first plum", "second plum", "third plum"]
    assert look(c, "search", query="plum") == ["second plum"]
    assert look(a, "replay", since_message_id=first) == ["second plum", "third plum"]
    assert look(c, "replay", since_message_id=first) == ["second plum"]


def test_presence_is_told_to_those_who_ask(node: Node, trio: tuple[str, str, str]) -> None:
    a, b, _ = trio
    assert node.ask(a, "command", {"command": "presence_subscribe"})["payload"]["on"] is True
    node.do("close", b, code=1000)
    node.hear(a, "message", lambda event: event["frame"]["payload"] == {"event": "leave", "agent": b})
    agents = node.ask(a, "command", {"command": "presence_list"})["payload"]["agents"]
    assert {"agent": a, "connected": True} in agents
    assert {"agent": b, "connected": False} in agents


# --- limits ------------------------------------------------------------------------------------------------------------------


def test_over_the_limit_and_who_has_none() -> None:
    with running("--arc-rate-limit=3", "--arc-trusted=vip-2") as (node, _):
        node.join("eager-2")
        node.join("vip-2")
        limits = node.request("GET", "/api/v1/arc/limits")["body"]
        assert (limits["rate_limit"], limits["hourly_limit"], limits["max_message_size"]) == ("3/min", 1_000, 65_536)
        for number in range(13):
            node.say("eager-2", ["vip-2"], number)
        refused = [node.hear("eager-2", "message")["frame"] for _ in range(10)]
        assert {one["error"] for one in refused} == {"rate_limit"}
        assert node.hear("eager-2", "close")["code"] == 4029
        assert node.hear_payloads("vip-2", 3) == [0, 1, 2]  # what was within the limit, though all came at once
        for number in range(20):
            node.say("vip-2", ["vip-2"], number)
        assert node.hear_payloads("vip-2", 20) == list(range(20))


def test_one_that_does_not_read_is_closed_and_gets_the_rest_later() -> None:
    with running("--arc-slow-bytes=65536", "--arc-rate-limit=0", "--arc-hourly-limit=0") as (node, _):
        token = node.join("slow-2")
        node.join("fast-2")
        node.do("stop-reading", "slow-2")
        for number in range(300):  # more than the system keeps for one that does not read
            node.say("fast-2", ["slow-2"], [number, "x" * 60_000])
        node.ask("fast-2", "command", {"command": "history", "limit": 1})  # all of them are stored
        node.do("read-on", "slow-2")
        assert node.hear("slow-2", "close")["code"] == 4008
        node.come("back-2", token)
        node.hear("back-2", "message", lambda event: event["frame"]["payload"][0] == 299)


def test_one_that_answers_no_ping_is_gone() -> None:
    with running("--arc-ping-ms=500") as (node, _):
        name, token = node.register("silent-2")
        node.come(name, token, answersPings=False)
        node.hear(name, "ping")
        assert node.hear(name, "close")["code"] == 4008


# --- the relay itself --------------------------------------------------------------------------------------------------------


def test_everything_is_still_there_after_a_kill() -> None:
    with running() as (node, daemon):
        token = node.join("kept-2")
        node.ask("kept-2", "subscribe", {"agents": ["zoe-1"]})
        other, other_token = node.register("away-4")
        node.say("kept-2", [other, "kept-2"], "stored")
        node.hear_frame("kept-2", payload="stored")
        daemon.restart()
        node.hear("kept-2", "close")
        node.url = daemon.wait_for_url()
        node.come("kept-2", token)
        assert node.ask("kept-2", "list_subscriptions")["payload"] == {"agents": ["zoe-1"]}
        node.come(other, other_token)
        assert node.hear_frame(other, payload="stored")["stored"] is True
        assert node.try_to_register('{"agent_id": "kept-2"}')["status"] == 409


def test_wss() -> None:
    flags = (f"--tls-cert={CERTIFICATES / 'cert.pem'}", f"--tls-key={CERTIFICATES / 'key.pem'}")
    with running(*flags, NODE_EXTRA_CA_CERTS=str(CERTIFICATES / "cert.pem")) as (node, _):
        assert node.url.startswith("https://")
        node.join("safe-2")
        node.say("safe-2", ["safe-2"], "x" * 60_000)
        assert node.hear_payloads("safe-2", 1) == ["x" * 60_000]
