"""The relay as whoever serves people sees it: structs in, structs out, and nothing is ever a frame."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.inside_peer import InsidePeer
from agent_relay.ports.callers import Caller
from agent_relay.ports.service import Outgoing
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.nesting import MAX_NESTING
from agent_relay.protocol.payloads import HistoryPayload, SpawnPayload
from agent_relay.protocol.states import CloseReason

from .service_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def send(scene: Scene, to: Any = "Bob", body: str = "x", key: str | None = None, **more: Any) -> Any:
    return scene.ask(lambda: scene.service.send(Outgoing(to=to, body=body, **more), key))


# --- looking --------------------------------------------------------------------------------------------------------------------


def test_one_agent_is_looked_up_by_its_name_alone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.relay.connect("Bob")
    scene.relay.connect("Carl")
    described: list[str] = []
    whole = scene.relay.relay.queries.describe
    monkeypatch.setattr(scene.relay.relay.queries, "describe", lambda agent: described.append(agent.name) or whole(agent))
    assert scene.service.agent("bOB").name == "Bob"
    assert described == ["Bob"]
    with pytest.raises(RelayError) as missing:
        scene.service.agent("Dora")
    assert (missing.value.code, missing.value.details) == (ErrorCode.AGENT_NOT_FOUND, {"name": "Dora"})


def test_agents_and_the_server_are_structs(scene: Scene) -> None:
    scene.relay.connect("Bob", cli="claude")
    assert [(agent.name, agent.cli, agent.connected) for agent in scene.service.agents()] == [("Bob", "claude", True)]
    server = scene.service.server()
    assert (server.connected, server.storage.kind) == (1, scene.relay.store.stats().kind)


def test_the_history_is_structs_too(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    sent = send(scene, body="hello", thread="t").result
    page = scene.ask(lambda: scene.service.messages(HistoryPayload(receipts=True))).result
    assert [(each.from_, each.to, each.payload["body"], each.thread) for each in page.messages] == [("Anna", "Bob", "hello", "t")]
    assert [place.stage for place in page.messages[0].recipients] == ["sent"]
    bob.ack(bob.take_one("DELIVER"), door="hooks")
    life = scene.ask(lambda: scene.service.message(sent.message_id)).result
    assert [(step.event, step.door) for step in life.trail] == [("sent", None), ("injected", "hooks")]
    conversations = scene.ask(lambda: scene.service.conversations(10)).result
    assert [(each.type, each.count, each.last.from_) for each in conversations] == [("pair", 1, "Anna"), ("thread", 1, "Anna")]


def test_a_store_that_cannot_be_read_is_said_to(scene: Scene) -> None:
    scene.relay.store.fail_next_read()
    assert scene.ask(lambda: scene.service.messages(HistoryPayload())).error.code is ErrorCode.SERVICE_UNAVAILABLE


def test_requests_are_those_of_one_agent_or_of_all(scene: Scene) -> None:
    for name in ("Dora", "Bob"):
        wrapper = scene.relay.connect(name, capabilities={"control": True})
        report = {"type": "permission.requested", "fields": {"requestId": f"of-{name}", "description": "Run?", "tool": "Bash"}}
        wrapper.say("AGENT_EVENT", report)
    assert [(each.agent, each.request.id) for each in scene.service.requests()] == [("Bob", "of-Bob"), ("Dora", "of-Dora")]
    assert [each.request.id for each in scene.service.requests("dora")] == ["of-Dora"]
    assert {each.request.kind for each in scene.service.requests()} == {"permission"}
    with pytest.raises(RelayError):
        scene.service.requests("Nobody")


# --- commands -------------------------------------------------------------------------------------------------------------------


def test_a_command_is_checked_for_whoever_gives_it(scene: Scene) -> None:
    wrapper = scene.relay.connect("Bob", capabilities={"control": True})
    assert scene.ask(lambda: scene.service.control("Bob", "pause")).result is None
    assert wrapper.payload("CONTROL")["command"] == "pause"
    refused = scene.ask(lambda: scene.service.control("Bob", "pause", caller=Caller("Carl", via="http"))).error
    assert refused.details["reason"] == "inside_agent"
    assert wrapper.take("CONTROL") == []
    assert scene.ask(lambda: scene.service.control("Bob", "resume")).result is None  # the next is the owner's again


def test_an_order_that_the_daemon_cannot_carry_out(scene: Scene) -> None:
    assert scene.ask(lambda: scene.service.spawn(SpawnPayload("Bob", "claude"))).error.code is ErrorCode.FEATURE_UNSUPPORTED
    with pytest.raises(RelayError):
        scene.service.spawn(SpawnPayload("not a name", "claude"))
    assert scene.ask(lambda: scene.service.release("Bob", None)).error.code is ErrorCode.FEATURE_UNSUPPORTED


def test_members_join_and_leave(scene: Scene) -> None:
    scene.relay.connect("Bob")
    assert scene.ask(lambda: scene.service.change_membership("join", "#dev", "bob")).result == "Bob"
    assert scene.ask(lambda: scene.service.change_membership("join", "#dev", None)).result == "Anna"
    assert [each.members for each in scene.ask(scene.service.channels).result] == [("Anna", "Bob")]
    assert scene.ask(lambda: scene.service.change_membership("leave", "#dev", "Bob")).result == "Bob"
    gone = scene.ask(lambda: scene.service.change_membership("leave", "#other", "Bob")).error
    assert gone.code is ErrorCode.CHANNEL_NOT_FOUND


def test_data_is_counted_and_forgotten(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    send(scene)
    bob.drop()
    assert scene.ask(lambda: scene.service.count_data("Bob")).result.undelivered_to == 1
    assert scene.ask(lambda: scene.service.forget("Bob")).result.messages == 1


def test_while_the_daemon_stops_nothing_is_begun(scene: Scene) -> None:
    scene.relay.connect("Bob")
    scene.relay.turn(scene.relay.relay.begin_shutdown)
    assert send(scene).error.message == "The daemon is stopping."
    with pytest.raises(RelayError, match="stopping"):
        scene.service.messages(HistoryPayload())


def test_who_waits_when_the_daemon_ends_is_told(scene: Scene) -> None:
    wrapper = scene.relay.connect("Bob", capabilities={"control": True})
    wrapper.say("AGENT_EVENT", {"type": "permission.requested", "fields": {"requestId": "r", "description": "?", "tool": "Bash"}})
    answer = scene.ask(lambda: scene.service.answer("Bob", "r", "approve", ""))
    assert not answer.done()
    scene.relay.turn(scene.service.close)
    assert answer.error.message == "The daemon is stopping."


def test_it_stays_connected_for_as_long_as_the_daemon_lives() -> None:
    scene = Scene(heartbeat_ms=1_000)
    scene.relay.connect("Bob")
    send(scene)
    scene.ask(lambda: scene.service.messages(HistoryPayload()))
    for _ in range(20):
        scene.pass_time(500)
    assert [note for note in scene.relay.log.named("disconnected") if note["agent"] == "Anna"] == []


# --- sending --------------------------------------------------------------------------------------------------------------------


def test_a_message_is_stored_before_anybody_is_told(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    scene.ask(scene.service.start)
    send(scene)
    scene.relay.store.hold()
    sent = send(scene, body="later", kind="action", data={"a": [1]}, priority=2)
    assert not sent.done()
    scene.relay.store.release()
    scene.relay.settle()
    assert (sent.result.recipients, sent.result.queued, sent.result.delivered) == (1, 0, None)
    told = bob.take("DELIVER")[1]
    assert (told["from"], told["payload"]) == ("Anna", {"kind": "action", "body": "later", "data": {"a": [1]}})
    assert told["payload_meta"] == {"priority": 2}


def test_what_cannot_be_stored_or_routed_is_an_error(scene: Scene) -> None:
    scene.relay.connect("Bob")
    send(scene)
    scene.relay.store.fail_next()
    failed = send(scene).error
    assert (failed.code, failed.retry_after_ms) == (ErrorCode.SERVICE_UNAVAILABLE, 1_000)
    assert send(scene, to="Nobody").error.code is ErrorCode.AGENT_NOT_FOUND
    deep: dict[str, Any] = {}
    for _ in range(MAX_NESTING):
        deep = {"a": deep, "text": "x" * 20}
    assert "nested deeper" in send(scene, data=deep).error.message


def test_nothing_of_it_becomes_a_frame(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The payload is encoded, since it is stored; everything else stays what it was."""
    bob = scene.relay.connect("Bob")
    send(scene)
    bob.take()
    passes: list[str] = []
    for place in ("peer.encode_envelope", "peer.encode_stored", "send_receipts.encode_stored", "reception.decode_client_frame"):
        monkeypatch.setattr(f"agent_relay.core.{place}", lambda *_, place=place, **__: passes.append(place) or b"")
    encoded: list[Any] = []
    encode = scene.relay.relay.sending.receive_inside.__globals__["encode_json"]
    monkeypatch.setattr("agent_relay.core.sending.encode_json", lambda value: encoded.append(value) or encode(value))
    assert send(scene, body="y").result.recipients == 1
    assert (passes, encoded) == ([], [{"kind": "message", "body": "y"}])


def test_it_waits_until_everyone_has_it(scene: Scene) -> None:
    bob, carl = scene.relay.connect("Bob"), scene.relay.connect("Carl")
    sent = send(scene, to=["Bob", "Carl"], wait_ms=1_000)
    bob.ack(bob.take_one("DELIVER"))
    scene.pass_time(300)
    assert not sent.done()
    carl.ack(carl.take_one("DELIVER"))
    scene.pass_time(300)
    assert (sent.result.delivered, sent.result.by) == (True, ["Bob", "Carl"])


def test_it_waits_no_longer_than_it_was_told(scene: Scene) -> None:
    scene.relay.connect("Bob")
    sent = send(scene, wait_ms=1_000)
    scene.pass_time(950)
    assert not sent.done()
    scene.pass_time(100)
    assert (sent.result.delivered, sent.result.by, sent.result.failure) == (False, [], None)


def test_a_refusal_ends_the_waiting(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    sent = send(scene, wait_ms=60_000)
    bob.nack(bob.take_one("DELIVER"), "REJECTED", message="not now")
    scene.pass_time(300)
    assert (sent.result.delivered, sent.result.failure) == (False, "not now")


def test_an_answer_comes_with_the_acknowledgement_or_as_a_message(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    sent = send(scene, reply_ms=60_000)
    asked = bob.take_one("DELIVER")
    correlation = asked["payload_meta"]["sync"]["correlationId"]
    bob.ack(asked, correlationId=correlation, response="yes", responseData={"n": 1})
    scene.pass_time(300)
    reply = sent.result.reply
    assert (reply.by, reply.body, reply.response, reply.data, reply.message_id) == ("Bob", "yes", "yes", {"n": 1}, None)
    sent = send(scene, reply_ms=60_000)
    asked = bob.take_one("DELIVER")
    bob.ack(asked)
    bob.send("Anna", "done", payload={"data": {"n": 2}}, meta={"reply_to": asked["delivery"]["message_id"]})
    scene.settle()
    scene.pass_time(300)
    reply = sent.result.reply
    assert (reply.by, reply.body, reply.data) == ("Bob", "done", {"n": 2})
    assert reply.message_id.startswith("msg_")


def test_who_hangs_up_is_not_waited_for(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    sent = send(scene, reply_ms=60_000)
    asked = bob.take_one("DELIVER")
    scene.relay.turn(sent.cancel)
    bob.ack(asked, correlationId=asked["payload_meta"]["sync"]["correlationId"], response="too late")
    scene.pass_time(300)
    again = send(scene, reply_ms=1_000)  # nothing of the first is left
    scene.pass_time(1_100)
    assert again.result.reply is None


def test_the_same_key_is_the_same_message(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    first, again = send(scene, key="k").result, send(scene, key="k").result
    assert first.message_id == again.message_id
    assert len(bob.take("DELIVER")) == 1
    for other in ({"body": "y"}, {"to": "Anna"}, {"topic": "t"}, {"data": {}}):
        assert send(scene, key="k", **other).error.details["reason"] == "key_reused"


def test_a_key_is_known_over_a_restart(scene: Scene) -> None:
    scene.relay.connect("Bob")
    first = send(scene, key="k").result
    scene.relay.restart()
    after = Scene(scene.relay)
    after.ask(after.service.start)
    assert send(after, key="k").result.message_id == first.message_id
    assert send(after, key="k", body="another").error.details["reason"] == "key_reused"


def test_the_same_key_twice_before_it_is_stored(scene: Scene) -> None:
    scene.relay.connect("Bob")
    send(scene)
    scene.relay.store.hold()
    first, second = send(scene, key="k"), send(scene, key="k")
    scene.relay.store.release()
    scene.relay.settle()
    assert first.result.message_id == second.result.message_id


# --- the owner's name -----------------------------------------------------------------------------------------------------------


def test_what_is_written_to_the_owner_is_acknowledged(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    send(scene)
    bob.send("Anna", "hello", meta={"requires_ack": True})
    assert bob.delivered() == []  # not in the same turn
    scene.settle()
    scene.pass_time(300)
    assert [(each["by"], each["door"]) for each in bob.delivered()] == [("Anna", "http")]


def test_the_owner_is_there_again_after_a_restart(scene: Scene) -> None:
    scene.relay.connect("Bob")
    send(scene)
    scene.relay.restart()
    after = Scene(scene.relay)
    assert after.ask(after.service.start).result is None
    assert after.service.agent("Anna").connected


def test_a_command_under_the_owners_name_goes_first_and_the_owner_comes_back(scene: Scene) -> None:
    scene.relay.connect("Bob")
    send(scene)
    command = scene.relay.connect("Anna")
    assert command.peer.active
    scene.pass_time(600)
    command.drop()
    scene.pass_time(600)
    agent = scene.service.agent("Anna")
    assert (agent.connected, agent.cli) == (True, "http")


def test_it_does_not_give_way_while_somebody_waits(scene: Scene) -> None:
    scene.relay.connect("Bob")
    sent = send(scene, wait_ms=60_000)
    command = scene.relay.open()
    command.hello("Anna")
    assert command.payload("ERROR")["details"]["reason"] == "name_in_use"
    assert not sent.done()


def test_another_name_stands_in_while_the_owners_is_taken(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    scene.relay.connect("Anna")
    sent = send(scene)
    for _ in range(15):
        assert not sent.done()
        scene.pass_time(100)
        if sent.done():
            break
    assert sent.result.recipients == 1
    assert bob.take_one("DELIVER")["from"] == "Anna-2"


def test_two_who_wait_for_the_name_get_the_same(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    command = scene.relay.connect("Anna")
    first, second = send(scene, body="1"), send(scene, body="2")
    scene.pass_time(200)
    command.drop()
    scene.pass_time(200)
    assert first.result.recipients == second.result.recipients == 1
    assert [(each["from"], each["payload"]["body"]) for each in bob.take("DELIVER")] == [("Anna", "1"), ("Anna", "2")]


def test_a_closed_client_says_so_to_everybody_who_waits() -> None:
    scene = Scene()
    peer = InsidePeer(scene.relay.relay.context, 0)
    heard: list[Any] = []
    peer.expect("a", heard.append)
    peer.close(CloseReason.SHUTDOWN)
    assert [each.message for each in heard] == ["The daemon is stopping."]


def test_a_core_that_fails_leaves_nobody_waiting(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.relay.connect("Bob")
    send(scene)
    with monkeypatch.context() as broken:
        broken.setattr(scene.relay.relay.spawning, "receive", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            scene.service.spawn(SpawnPayload("Carl", "claude"))
    assert scene.relay.connect("Anna").peer.active  # the owner gives way: nothing is waited for


def test_a_name_that_is_taken_before_it_was_used_is_asked_for_again(scene: Scene) -> None:
    bob = scene.relay.connect("Bob")
    promised: list[Any] = []
    scene.relay.turn(lambda: promised.append(scene.service.send(Outgoing(to="Bob", body="x"))))
    command = scene.relay.connect("Anna")  # it was welcomed, and has not heard so yet
    scene.settle()
    assert not promised[0].done()
    command.drop()
    scene.pass_time(200)
    assert promised[0].result.recipients == 1
    assert bob.take_one("DELIVER")["from"] == "Anna"
