from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent_relay.protocol import payloads
from agent_relay.protocol.decode import decode_send
from agent_relay.protocol.errors import RelayError


def read(kind: Any, json: str) -> Any:
    return msgspec.json.decode(json, type=kind)


@pytest.mark.parametrize(
    "kind", [value for value in vars(payloads).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)]
)
def test_no_default_is_shared(kind: type[msgspec.Struct]) -> None:
    required = dict.fromkeys(kind.__struct_fields__[: len(kind.__struct_fields__) - len(kind.__struct_defaults__)], "x")
    first, second = kind(**required), kind(**required)
    for name in kind.__struct_fields__:
        value = getattr(first, name)
        if isinstance(value, list | dict):
            assert value is not getattr(second, name)


def test_defaults_of_the_contract() -> None:
    hello = read(payloads.HelloPayload, '{"agent":"A"}')
    assert (hello.version, hello.capabilities, hello.session, hello.meta) == (1, {}, None, None)
    send = read(payloads.SendPayload, '{"body":""}')
    assert (send.kind, send.thread, len(send.data)) == ("message", None, 0)
    assert read(payloads.SendMeta, "{}").priority == payloads.DEFAULT_PRIORITY == 5


def test_both_spellings_of_the_streams_of_a_resume() -> None:
    by_topic = read(payloads.ResumePayload, '{"agent":"A","resume_token":"t","streams":{"":{"last_seq":3},"a.b":{"last_seq":0}}}')
    assert {topic: point.last_seq for topic, point in by_topic.streams.items()} == {"": 3, "a.b": 0}
    as_list = read(
        payloads.ResumePayload, '{"agent":"A","resume_token":"t","streams":[{"topic":"a","peer":"B","last_seq":3},{}]}'
    )
    assert [(point.topic, point.peer, point.last_seq) for point in as_list.streams] == [("a", "B", 3), ("", None, 0)]


def test_words_of_python_are_not_the_words_of_the_wire() -> None:
    history = read(payloads.HistoryPayload, '{"with":"B","from":"A","with_":"x"}')
    assert (history.with_, history.from_) == ("B", "A")
    assert msgspec.json.decode(msgspec.json.encode(history)) == {"with": "B", "from": "A"}


@pytest.mark.parametrize(("value", "good"), [(-1, False), (0, True), (2**53 - 1, True), (2**53, False), (2**64, False)])
def test_counts_fit_every_reader_and_every_store(value: int, good: bool) -> None:
    if good:
        assert read(payloads.Count, str(value)) == value
    else:
        with pytest.raises(msgspec.ValidationError):
            read(payloads.Count, str(value))


@pytest.mark.parametrize(("value", "good"), [("a", True), ("a" * 64, True), ("a" * 65, False), ("a\n", False), ("A", False)])
def test_kinds_are_words_in_lower_case(value: str, good: bool) -> None:
    raw = msgspec.Raw(msgspec.json.encode({"body": "", "kind": value}))
    if good:
        assert decode_send(raw).kind == value
    else:
        with pytest.raises(RelayError) as caught:
            decode_send(raw)
        assert caught.value.details == {"field": "payload.kind"}


def test_a_stream_of_a_sync_says_everything() -> None:
    assert msgspec.to_builtins(payloads.StreamPoint()) == {"topic": "", "peer": None, "last_seq": 0, "server_last_seq": None}


@pytest.mark.parametrize("value", [payloads.SendPayload(body="x"), payloads.AckPayload(ack_id="d_1")])
def test_absent_raw_parts_are_not_written(value: Any) -> None:
    assert msgspec.json.decode(msgspec.json.encode(value)) in ({"body": "x"}, {"ack_id": "d_1"})
