"""Delivery ids: beside the message's own, different for each recipient, the same after a restart."""

from __future__ import annotations

from agent_relay.core.messages import delivery_id
from agent_relay.protocol.ulid import is_ulid
from tests.support.harness import RelayHarness


def test_each_recipient_has_an_id_of_its_own_and_none_is_a_message_s() -> None:
    relay = RelayHarness()
    alice = relay.connect("Alice")
    others = [relay.connect(f"Bob{number}") for number in range(20)]
    for _ in range(20):
        alice.send("*")
    ids = [frame["id"] for other in others for frame in other.take("DELIVER")]
    message_ids = {answer["message_id"].removeprefix("msg_") for answer in alice.stored()}
    assert len(set(ids)) == 400
    assert all(is_ulid(id_.removeprefix("d_")) for id_ in ids)
    assert not message_ids & {id_.removeprefix("d_") for id_ in ids}


def test_a_delivery_id_depends_on_the_stored_row_alone() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob")
    (row,) = relay.store.batches[-1].messages
    assert bob.take_one("DELIVER")["id"] == delivery_id(row, 0)
