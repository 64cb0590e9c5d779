from __future__ import annotations

import dataclasses
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.checksums import make_checksum
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage, parse_headers, write_error_answer, write_headers

from .strategies import LARGEST_NUMBER, names

MESSAGE_ID = "msg_01HV8X9Y2Z3W4Q5R6S7T8U9V0A"


def refuse(text: str) -> RelayError:
    with pytest.raises(RelayError) as caught:
        parse_headers(text)
    return caught.value


def refuse_to_write(message: HeaderMessage) -> RelayError:
    with pytest.raises(RelayError) as caught:
        write_headers(message)
    return caught.value


# --- reading -----------------------------------------------------------------------------------------------------


def test_the_simplest_message() -> None:
    assert parse_headers("TO: Bob\n\nHello Bob\n") == HeaderMessage(to=("Bob",), body="Hello Bob")


def test_every_header_of_a_message() -> None:
    text = textwrap.dedent(f"""\
        TO: Bob
        KIND: action
        THREAD: task 123
        ID: {MESSAGE_ID}
        SEQ: 42
        SESSION: ses_1
        CHECKSUM: {make_checksum("Please review.")}
        REPLY-TO: msg_0
        PRIORITY: 0
        TTL: 5m
        AWAIT: 30s
        CORRELATION: corr_1
        REQUIRE-ACK: false
        TOPIC: build.done
        VERSION: 2

        Please review.
        """)
    assert parse_headers(text) == HeaderMessage(
        to=("Bob",),
        kind="action",
        thread="task 123",
        id=MESSAGE_ID,
        seq=42,
        session="ses_1",
        checksum=make_checksum("Please review."),
        reply_to="msg_0",
        priority=0,
        ttl_ms=300_000,
        await_ms=30_000,
        correlation="corr_1",
        require_ack=False,
        topic="build.done",
        version=2,
        body="Please review.",
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "KIND: spawn\nNAME: Worker\nCLI: claude --model opus\nCWD: /src/my app\n\nBuild it.\n",
            HeaderMessage(kind="spawn", name="Worker", cli="claude --model opus", cwd="/src/my app", body="Build it."),
        ),
        ("KIND: release\nNAME: Worker\n", HeaderMessage(kind="release", name="Worker")),
        (
            "TO: Alice\nKIND: ack\nCORRELATION: corr_1\n\nReceived.\n",
            HeaderMessage(to=("Alice",), kind="ack", correlation="corr_1", body="Received."),
        ),
        (
            "KIND: error\nCODE: AGENT_BUSY\nCATEGORY: delivery\nRETRYABLE: true\nRETRY-AFTER: 5000\n\nB",
            HeaderMessage(kind="error", code="AGENT_BUSY", category="delivery", retryable=True, retry_after_ms=5_000, body="B"),
        ),
        (
            "KIND: backpressure\nQUEUE-DEPTH: 8\nQUEUE-CAPACITY: 10\nDELAY-MS: 5000\nACCEPTING: true\n",
            HeaderMessage(kind="backpressure", queue_depth=8, queue_capacity=10, delay_ms=5_000, accepting=True),
        ),
        (
            "KIND: timeout\nCORRELATION: c\nWAITED: 30000\n\nNo answer.",
            HeaderMessage(kind="timeout", correlation="c", waited_ms=30_000, body="No answer."),
        ),
        ("KIND: event\nTYPE: agent.idle\n", HeaderMessage(kind="event", type="agent.idle")),
        (
            "KIND: hello\nVERSION: 2\nCAPABILITIES: sync,backpressure, checksums\nNAME: Alice\n",
            HeaderMessage(kind="hello", version=2, capabilities=("sync", "backpressure", "checksums"), name="Alice"),
        ),
        (
            "KIND: welcome\nVERSION: 2\nNEGOTIATED-VERSION: 1\nCAPABILITIES: sync\nNAME: daemon\n",
            HeaderMessage(kind="welcome", version=2, negotiated_version=1, capabilities=("sync",), name="daemon"),
        ),
    ],
)
def test_other_kinds(text: str, wanted: HeaderMessage) -> None:
    assert parse_headers(text) == wanted
    assert parse_headers(write_headers(wanted)) == wanted


@pytest.mark.parametrize(
    ("to", "wanted", "target"),
    [
        ("Bob", ("Bob",), "Bob"),
        ("*", ("*",), "*"),
        ("#dev", ("#dev",), "#dev"),
        ("Bob,Carol", ("Bob", "Carol"), ["Bob", "Carol"]),
        ("Bob , Carol,Dan", ("Bob", "Carol", "Dan"), ["Bob", "Carol", "Dan"]),
    ],
)
def test_targets(to: str, wanted: tuple[str, ...], target: Any) -> None:
    message = parse_headers(f"TO: {to}\n\nx\n")
    assert message.to == wanted
    assert message.target == target


def test_without_a_target() -> None:
    assert HeaderMessage(kind="event", type="x").target is None


def test_names_in_any_case_and_unknown_ones_ignored() -> None:
    text = "to: Bob\nX-Later: anything: at all\nFROM: Mallory\nReply-To: m\nX-Later: twice\nX_Y:\n\nx"
    assert parse_headers(text) == HeaderMessage(to=("Bob",), reply_to="m", body="x")


@pytest.mark.parametrize("line", ["TO:Bob", "TO:   Bob  ", "TO:\tBob\t", "TO : Bob"])
def test_spaces_around_a_value(line: str) -> None:
    assert parse_headers(line + "\n\nx").to == ("Bob",)


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_headers("\ufeffTO: Bob\n\n\ufeffx").body == "\ufeffx"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("TO: B", ""),
        ("TO: B\n", ""),
        ("TO: B\n\n", ""),
        ("TO: B\n\n\n", ""),
        ("TO: B\n\n\n\n", "\n"),
        ("TO: B\n\nx", "x"),
        ("TO: B\n\nx\n", "x"),
        ("TO: B\n\nx\n\n", "x\n"),
        ("TO: B\n\n\nx", "\nx"),
        ("TO: B\n\nSUBJECT: y\n\nno colon\n \n", "SUBJECT: y\n\nno colon\n "),
        ("TO: B\n\nTO: C\n", "TO: C"),
        ("TO: B\n \t\nx\n", "x"),
        ("TO: B\r\n\r\nx\r\ny\r\n", "x\r\ny"),
        ("TO: B\r\n\r\nx\n", "x"),
        ("TO: B\r\n\r\nx\r", "x\r"),
        ("TO: B\n\nx\r\n", "x\r"),
        ("TO: B\n\nx\x0by\x85z\u2028\n", "x\x0by\x85z\u2028"),
    ],
)
def test_the_body_is_kept_but_for_one_line_end(text: str, body: str) -> None:
    assert parse_headers(text).body == body


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", False), ("AWAIT: 1s\n", True), ("AWAIT: 1s\nREQUIRE-ACK: false\n", False), ("REQUIRE-ACK: TRUE\n", True)],
)
def test_waiting_asks_for_an_acknowledgement(text: str, wanted: bool) -> None:
    assert parse_headers(f"TO: Bob\n{text}\nx").requires_ack is wanted


@pytest.mark.parametrize("version", ["1", "2", "99"])
def test_versions(version: str) -> None:
    assert parse_headers(f"TO: B\nVERSION: {version}\n\nx").version == int(version)
    assert parse_headers("TO: B\n\nx").version == 1


@pytest.mark.parametrize("algorithm", ["sha256", "crc32"])
def test_a_right_checksum(algorithm: str) -> None:
    checksum = make_checksum("Grüße\n", algorithm)
    assert parse_headers(f"TO: B\nCHECKSUM: {checksum}\n\nGrüße\n\n").checksum == checksum


# --- refusing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checksum", ["sha256:a1b2c3d4", "md5:00", make_checksum("y"), make_checksum("x\n"), "crc32:00000000"])
def test_a_wrong_checksum(checksum: str) -> None:
    error = refuse(f"TO: B\nCHECKSUM: {checksum}\n\nx\n")
    assert error.code is ErrorCode.CHECKSUM_MISMATCH
    assert error.details == {"header": "CHECKSUM", "line": 2}


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("", "TO"),
        ("\n", "TO"),
        ("\nTO: Bob\n\nx", "TO"),
        ("KIND: message\n\nx", "TO"),
        ("KIND: ack\nCORRELATION: c\n\nx", "TO"),
        ("KIND: thinking\n\nx", "TO"),
        ("TOPIC: a.b\n\nx", "TO"),
        ("KIND: spawn\nCLI: claude\n\nx", "NAME"),
        ("KIND: spawn\nNAME: W\n\nx", "CLI"),
        ("KIND: release\n", "NAME"),
        ("KIND: event\n\n{}", "TYPE"),
        ("KIND: error\n\nx", "CODE"),
    ],
)
def test_a_missing_header(text: str, header: str) -> None:
    error = refuse(text)
    assert error.code is ErrorCode.MISSING_HEADER
    assert error.details == {"header": header}
    assert error.message.startswith(f"{header} is missing")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("KIND", ["Message", "two words", "x" * 65, "1", "-"]),
        ("ID", ["msg_", "msg_" + "0" * 25, "msg_" + "0" * 27, "0" * 26, "msg_" + "é" * 26, "MSG_" + "0" * 26, "msg_" + "-" * 26]),
        ("SEQ", ["-1", "x", "1.5", "1e3", "+1", "1_0", "٣", "9" * 17, str(2**53)]),
        ("PRIORITY", ["-1", "10", "high", "5.0"]),
        ("TTL", ["0", "-5s", "soon", "5 weeks", "1.5s", "999999999999999d", "9" * 16]),
        ("AWAIT", ["0", "0s", "true", "5x"]),
        ("REQUIRE-ACK", ["yes", "1", "tru"]),
        ("VERSION", ["0", "-1", "two", "1.1"]),
        ("CORRELATION", ["x" * 129]),
        ("REPLY-TO", ["x" * 129]),
        ("SESSION", ["x" * 129]),
        ("CODE", ["agent_busy", "NO GOOD"]),
        ("CATEGORY", ["Delivery"]),
        ("RETRYABLE", ["maybe"]),
        ("RETRY-AFTER", ["-1", "later"]),
        ("QUEUE-DEPTH", ["-1"]),
        ("QUEUE-CAPACITY", ["many"]),
        ("DELAY-MS", ["5s"]),
        ("ACCEPTING", ["0"]),
        ("WAITED", ["-1"]),
        ("CAPABILITIES", ["sync,,acks", ",", "sync,"]),
        ("NEGOTIATED-VERSION", ["0"]),
    ],
)
def test_a_wrong_value(name: str, values: list[str]) -> None:
    for value in ["", *values, "a\x07b", "a\rb", "a\u2028b", "a\x9bb", "a\tb"]:
        error = refuse(f"TO: B\nX-Unknown: 1\n{name}: {value}\n\nx")
        assert error.code is ErrorCode.INVALID_HEADER
        assert error.details == {"header": name, "line": 3}
        assert error.message.startswith(name)
        assert error.message.isprintable()


@pytest.mark.parametrize(
    ("text", "header"),
    [
        *(
            (f"\nTO: {to}", "TO")
            for to in ["a/b", "-a", "Bob,", ",Bob", "Bob,,Al", "Bob,*", "Bob,#dev", "#", "#a b", "a b", "@bob"]
        ),
        *((f"TO: B\nTOPIC: {topic}", "TOPIC") for topic in ["a..b", "a.*", ">", ".a", "a b"]),
        *((f"KIND: spawn\nNAME: {name}\nCLI: x", "NAME") for name in ["a b", "relay", "HUMAN", "-x"]),
        ("KIND: release\nNAME: a b", "NAME"),
    ],
)
def test_a_wrong_target(text: str, header: str) -> None:
    error = refuse(text.lstrip("\n") + "\n\nx")
    assert error.code is ErrorCode.INVALID_TARGET
    assert error.details == {"header": header, "line": 1 if header == "TO" else 2}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Hello Bob", 1),
        ("TO: Bob\nSome secret words\n\nx", 2),
        ("TO: Bob\n: value\n\nx", 2),
        ("TO: Bob\nTHREAD: a\nHey Bob: secret words\n\nx", 3),
        ("TO: Bob\n  indented: secret words\n\nx", 2),
        ("TO: Bob\n-X: 1\n", 2),
        ("TO: Bob\nÜBER: 1\n", 2),
    ],
)
def test_a_line_that_is_no_header(text: str, line: int) -> None:
    error = refuse(text)
    assert error.code is ErrorCode.INVALID_HEADER
    assert error.details == {"line": line}
    assert f"Line {line} " in error.message
    assert "secret" not in error.message


def test_a_header_twice() -> None:
    error = refuse("TO: Bob\nTHREAD: a\nto: Carol\n\nx")
    assert error.code is ErrorCode.INVALID_HEADER
    assert error.details == {"header": "TO", "line": 3}
    assert "line 1" in error.message


@pytest.mark.parametrize("text", ["TO: B\n\nx\n\ud800", "TO: B\nTHREAD: \udcff\n\nx"])
def test_text_that_cannot_be_utf_8(text: str) -> None:
    error = refuse(text)
    assert error.code is ErrorCode.INVALID_FORMAT
    assert error.details == {"line": text.count("\n", 0, max(text.find("\ud800"), text.find("\udcff"))) + 1}


@given(st.text() | st.text("TO:KINDmesageBob\n\r \t"))
def test_any_text_is_answered(text: str) -> None:
    try:
        message = parse_headers(text)
    except RelayError:
        return
    assert parse_headers(write_headers(message)) == message


# --- writing -----------------------------------------------------------------------------------------------------

lines = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=60).filter(
    lambda text: text == text.strip(" ")
)
identifiers = lines.filter(lambda text: len(text) <= 128)
numbers = st.integers(0, LARGEST_NUMBER)
any_text = st.text(st.characters())  # lone surrogates too
durations = st.integers(1, LARGEST_NUMBER)
words = lines.filter(lambda text: "," not in text and text == text.strip(" \t"))


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


messages = st.builds(
    HeaderMessage,
    to=st.sampled_from([("*",), ("#dev",)]) | st.lists(names, min_size=1, max_size=3).map(tuple),
    body=st.text() | st.text("\r\n :A"),
    kind=st.sampled_from(["message", "ack", "thinking", "release", "spawn", "event", "hello", "error", "x-1"]),
    thread=optional(lines),
    id=optional(st.from_regex(r"\Amsg_[0-9A-Z]{26}\Z")),
    seq=optional(numbers),
    session=optional(identifiers),
    reply_to=optional(identifiers),
    priority=optional(st.integers(0, 9)),
    ttl_ms=optional(durations),
    await_ms=optional(durations),
    correlation=optional(identifiers),
    require_ack=optional(st.booleans()),
    topic=optional(st.sampled_from(["a", "a.b", "ä.ö"])),
    name=names.map(lambda name: f"x{name[:60]}"),
    cli=lines,
    cwd=optional(lines),
    type=lines,
    version=st.integers(1, 99),
    code=st.just("QUEUE_FULL"),
    category=optional(st.just("delivery")),
    retryable=optional(st.booleans()),
    retry_after_ms=optional(numbers),
    queue_depth=optional(numbers),
    queue_capacity=optional(numbers),
    delay_ms=optional(numbers),
    accepting=optional(st.booleans()),
    waited_ms=optional(numbers),
    capabilities=st.lists(words, max_size=3).map(tuple),
    negotiated_version=optional(st.integers(1, 9)),
)


@given(messages, st.sampled_from([None, "sha256", "crc32"]))
def test_what_is_written_is_read_back_exactly(message: HeaderMessage, algorithm: str | None) -> None:
    if algorithm is not None:
        message = dataclasses.replace(message, checksum=make_checksum(message.body, algorithm))
    text = write_headers(message)
    assert parse_headers(text) == message
    assert write_headers(parse_headers(text)) == text


@given(messages)
def test_files_with_other_line_ends_say_the_same(message: HeaderMessage) -> None:
    head, _, body = write_headers(message).partition("\n\n")
    assert parse_headers(head.replace("\n", "\r\n") + "\r\n\r\n" + message.body + "\r\n") == message
    assert body.removesuffix("\n") == message.body or message.body == ""


def test_what_a_person_sees() -> None:
    message = HeaderMessage(to=("Bob", "Carol"), thread="t", ttl_ms=300_000, await_ms=1_500, body="Hello\nyou two")
    assert write_headers(message) == "TO: Bob, Carol\nTHREAD: t\nTTL: 5m\nAWAIT: 1500\n\nHello\nyou two\n"
    assert write_headers(HeaderMessage(kind="release", name="W")) == "KIND: release\nNAME: W\n\n"


@pytest.mark.parametrize("field", ["thread", "correlation", "reply_to", "session", "cwd", "cli", "type"])
@pytest.mark.parametrize(
    "value",
    [
        "a\nTO: Mallory",
        "a\r\nKIND: spawn",
        "a\rb",
        "\n",
        "",
        " a",
        "a ",
        "a\x00",
        "a\x1b[2J",
        "a\x85b",
        "a\u2028b",
        "\ud800",
    ],
)
def test_no_value_smuggles_a_line(field: str, value: str) -> None:
    fields: dict[str, Any] = {field: value}
    error = refuse_to_write(HeaderMessage(to=("Bob",), body="x", **fields))
    assert error.code is ErrorCode.INVALID_HEADER
    assert error.details == {"header": field.upper().replace("_", "-")}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"to": ()}, ErrorCode.MISSING_HEADER),
        ({"to": ("a/b",)}, ErrorCode.INVALID_TARGET),
        ({"to": ("Bob, Carol",)}, ErrorCode.INVALID_HEADER),
        ({"to": ("Bob\nKIND: spawn",)}, ErrorCode.INVALID_HEADER),
        ({"to": "Bob"}, ErrorCode.INVALID_HEADER),
        ({"topic": "a.*"}, ErrorCode.INVALID_TARGET),
        ({"kind": "spawn", "cli": "x", "name": "relay"}, ErrorCode.INVALID_TARGET),
        ({"kind": "Message"}, ErrorCode.INVALID_HEADER),
        ({"id": "m1"}, ErrorCode.INVALID_HEADER),
        ({"seq": -1}, ErrorCode.INVALID_HEADER),
        ({"seq": True}, ErrorCode.INVALID_HEADER),
        ({"priority": 10}, ErrorCode.INVALID_HEADER),
        ({"ttl_ms": 0}, ErrorCode.INVALID_HEADER),
        ({"await_ms": -1_000}, ErrorCode.INVALID_HEADER),
        ({"version": 0}, ErrorCode.INVALID_HEADER),
        ({"capabilities": ("a,b",)}, ErrorCode.INVALID_HEADER),
        ({"checksum": make_checksum("y")}, ErrorCode.CHECKSUM_MISMATCH),
        ({"body": "\ud800"}, ErrorCode.INVALID_FORMAT),
    ],
)
def test_what_could_not_be_read_back_is_not_written(fields: dict[str, Any], code: ErrorCode) -> None:
    good = HeaderMessage(to=("Bob",), body="x")
    assert write_headers(good)
    assert refuse_to_write(dataclasses.replace(good, **fields)).code is code


# --- error answers -----------------------------------------------------------------------------------------------


def test_an_error_answer() -> None:
    error = RelayError(ErrorCode.QUEUE_FULL, "Bob's queue is full.", retry_after_ms=5_000)
    assert write_error_answer(error, correlation="corr_1") == (
        "KIND: error\nCORRELATION: corr_1\nCODE: QUEUE_FULL\nCATEGORY: delivery\nRETRYABLE: true\nRETRY-AFTER: 5000\n\n"
        "Bob's queue is full.\n"
    )


@given(st.sampled_from(ErrorCode), any_text, st.none() | st.integers(-5, 2**60) | numbers, st.none() | any_text)
def test_an_error_answer_is_always_written_and_read(
    code: ErrorCode, sentence: str, after: int | None, correlation: str | None
) -> None:
    error = RelayError(code, sentence, retry_after_ms=after)
    answer = parse_headers(write_error_answer(error, correlation=correlation))
    assert (answer.kind, answer.code, answer.category, answer.retryable) == ("error", code, code.category, code.retryable)
    assert answer.retry_after_ms in (after, None)
    assert answer.correlation in (correlation, None)
    assert answer.body == error.message.encode("utf-8", "backslashreplace").decode()


@pytest.mark.parametrize("text", ["", "Hello", "TO: a/b\n\nx", "TO: B\nSEQ: x\n\ny", "TO: B\nCHECKSUM: x\n\ny", "KIND: event\n"])
def test_the_answer_to_a_file_that_was_refused(text: str) -> None:
    error = refuse(text)
    answer = parse_headers(write_error_answer(error))
    assert (answer.code, answer.body, answer.retryable) == (error.code, error.message, False)
