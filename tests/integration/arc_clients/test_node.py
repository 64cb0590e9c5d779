"""ARC with a client that shares nothing with ours: Node.js and `ws`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.arc_clients.node_client import Node


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0", "--arc-registrations-per-hour=0") as process:
        yield process


@pytest.fixture
def node(daemon: DaemonProcess) -> Iterator[Node]:
    with Node(daemon.wait_for_url(), daemon.api_token) as running:
        yield running


def test_connecting_by_header_and_by_query(node: Node) -> None:
    agent_id, token = node.register("node-connects")
    node.open("header", token=token)
    assert node.hear("header", "open")["extensions"] == ""  # it asked for compression and was given none
    welcome = node.hear_frame("header")
    assert (welcome["type"], welcome["payload"]["agent_id"]) == ("welcome", agent_id)
    assert welcome["limits"]["max_message_size"] == 65_536
    node.open("query", query=token)
    node.hear("query", "open")
    assert node.hear("header", "close")["code"] == 4000  # the newer connection took over


def test_registering_is_refused_as_it_should_be(node: Node) -> None:
    node.register("node-taken")
    assert node.try_to_register('{"agent_id": "node-taken"}')["body"]["error"] == "agent_id_taken"
    assert node.try_to_register('{"agent_id": "No!"}')["status"] == 400
    assert node.try_to_register("{")["body"]["error"] == "invalid_json"
    assert node.register()[0]


def test_wrong_tokens_are_refused_before_the_upgrade(node: Node) -> None:
    _, token = node.register("node-refused")
    node.open("wrong", token="tok_wrong")
    node.open("none")
    node.open("hidden", token="tok_wrong", query=token)
    for name in ("wrong", "none", "hidden"):
        assert node.hear(name, "refused")["status"] == 401


def test_direct_messages_broadcasts_and_what_stands_in_them(node: Node) -> None:
    for name in ("node-a", "node-b", "node-c"):
        node.join(name)
    node.say(
        "node-a", ["node-b"], {"n": 1, "é": "☃"}, type="note", ref="r1", colour="blue", **{"from": "node-c", "id": "x", "ts": 1}
    )
    got = node.hear_frame("node-b", type="note")
    assert (got["from"], got["to"], got["payload"]) == ("node-a", ["node-b"], {"n": 1, "é": "☃"})
    assert (got["ref"], got["colour"]) == ("r1", "blue")
    assert got["id"].startswith("msg_")
    assert got["ts"] > 1_700_000_000_000
    node.say("node-a", ["*"], "all")
    node.say("node-a", ["node-b", "node-c"], "both")
    for name in ("node-b", "node-c"):
        node.hear_frame(name, payload="all")
        node.hear_frame(name, payload="both")
    node.say("node-b", ["node-a"], "marker")
    node.hear_frame("node-a", payload="marker")
    assert node.heard_nothing("node-a", payload="all")
    assert node.heard_nothing("node-c", type="note")


def test_a_message_in_several_frames_is_one(node: Node) -> None:
    node.join("parts-a")
    node.join("parts-b")
    node.do("say-in-parts", "parts-a", parts=['{"to": ["par', 'ts-b"], "pay', 'load": "whole"}'])
    assert node.hear_frame("parts-b", payload="whole")["from"] == "parts-a"


def test_subscriptions(node: Node) -> None:
    for name in ("sub-reader", "sub-speaker", "sub-other"):
        node.join(name)
    node.do("say", "sub-reader", frame='{"to": ["relay"], "type": "subscribe", "payload": {"agents": ["sub-speaker"]}}')
    assert node.hear_frame("sub-reader", type="subscribed")["payload"] == {"agents": ["sub-speaker"], "count": 1}
    node.say("sub-speaker", ["sub-other"], "private")
    node.say("sub-speaker", ["*"], "public")
    node.hear_frame("sub-reader", payload="public")
    assert node.heard_nothing("sub-reader", payload="private")
    node.do("say", "sub-reader", frame='{"to": ["relay"], "type": "ping", "ref": 7}')
    assert node.hear_frame("sub-reader", type="pong")["from"] == "relay"


@pytest.mark.parametrize("frame", ["null", "{", "7", '{"to": "x", "payload": 1}', '{"payload": 1}', '{"to": ["a"]}'])
def test_what_is_no_message_is_answered_and_the_connection_lives(node: Node, frame: str) -> None:
    name, token = node.register()
    node.open(name, token=token)
    node.hear(name, "open")
    node.do("say", name, frame=frame)
    assert node.hear_frame(name, type="error")["error"] == "invalid_message"
    node.do("say-binary", name, frame='{"to": ["x"], "payload": 1}')
    assert node.hear_frame(name, type="error")["payload"]["code"] == "invalid_message"
    node.do("ping", name, data="still here")
    assert node.hear(name, "pong")["data"] == "still here"


def test_too_large_and_much_too_large(node: Node) -> None:
    node.join("large")
    node.say("large", ["large"], "x" * 70_000)
    assert node.hear_frame("large", type="error")["error"] == "message_too_large"
    node.say("large", ["large"], "x" * (1024 * 1024 + 1))
    assert node.hear("large", "close")["code"] == 1009


def test_a_close_is_answered_and_a_token_that_is_revoked_ends_the_connection(node: Node) -> None:
    token = node.join("leaver")
    node.do("close", "leaver", code=1000, reason="done")
    assert node.hear("leaver", "close")["code"] == 1000
    node.open("again", token=token)
    node.hear("again", "open")
    assert node.request("DELETE", "/register", token=token)["status"] == 200
    assert node.hear("again", "close")["code"] == 4001
    node.open("late", token=token)
    assert node.hear("late", "refused")["status"] == 401


def test_who_vanishes_gets_what_was_sent_meanwhile(node: Node) -> None:
    token = node.join("vanisher")
    node.join("sender")
    node.do("vanish", "vanisher")
    node.hear("vanisher", "close")
    node.say("sender", ["vanisher", "sender"], "for later")
    node.hear_frame("sender", payload="for later")
    node.open("vanisher", token=token)
    got = node.hear_frame("vanisher", payload="for later")
    assert got["from"] == "sender"


def test_agents_of_the_project_and_of_the_web_write_to_each_other(node: Node, daemon: DaemonProcess) -> None:
    node.join("web-agent")
    with daemon.connect_sync("Local") as local:
        local.send("web-agent", "from the socket")
        assert node.hear_frame("web-agent", payload="from the socket")["from"] == "Local"
        node.say("web-agent", ["Local"], "from the web")
        message = local.receive(20)
        assert (message.from_, message.body) == ("web-agent", "from the web")
        message.ack()


def test_the_end_of_the_daemon_is_said() -> None:
    with DaemonProcess("--port=0", "--arc-ping-ms=2s") as daemon, Node(daemon.wait_for_url(), daemon.api_token) as node:
        token = node.join("lasting")
        node.hear("lasting", "ping")
        node.hear("lasting", "ping")  # the first was answered, or the connection would not live
        daemon.terminate()
        assert node.hear("lasting", "close")["code"] == 1001
        daemon.start()
        node.url = daemon.wait_for_url()
        node.open("back", token=token)  # who is registered stays so
        node.hear("back", "open")
