from __future__ import annotations

import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.checksums import check_checksum, is_checksum, make_checksum
from agent_relay.protocol.errors import ErrorCode, RelayError

algorithms = st.sampled_from(["sha256", "crc32"])


def test_known_checksums() -> None:
    assert make_checksum("") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert make_checksum("123456789", "crc32") == "crc32:cbf43926"


@given(st.text())
def test_it_is_of_the_utf_8_bytes(body: str) -> None:
    assert make_checksum(body) == "sha256:" + hashlib.sha256(body.encode("utf-8")).hexdigest()
    assert make_checksum(body, "crc32") == f"crc32:{zlib.crc32(body.encode('utf-8')):08x}"


@given(st.text(), algorithms)
def test_ones_own_checksum_is_right_in_either_case(body: str, algorithm: str) -> None:
    checksum = make_checksum(body, algorithm)
    assert is_checksum(checksum)
    check_checksum(body, checksum)
    check_checksum(body, checksum.upper())


@given(st.text(), st.text(), algorithms)
def test_anothers_is_wrong(body: str, other: str, algorithm: str) -> None:
    if body != other:
        with pytest.raises(RelayError) as caught:
            check_checksum(body, make_checksum(other, algorithm))
        assert caught.value.code is ErrorCode.CHECKSUM_MISMATCH
        assert caught.value.details == {"field": "payload_meta.checksum"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256",
        "sha256:",
        "md5:" + "0" * 32,
        "0" * 64,
        "sha256:" + "0" * 63,
        "sha256:" + "g" * 64,
        "crc32:123",
        "crc32:12345678\n",
    ],
)
def test_malformed(text: str) -> None:
    assert not is_checksum(text)
    with pytest.raises(RelayError) as caught:
        check_checksum("body of the message", text)
    assert caught.value.code is ErrorCode.CHECKSUM_MISMATCH
    assert "body of the message" not in caught.value.message


def test_an_unknown_algorithm_is_a_program_error() -> None:
    with pytest.raises(ValueError, match="md5"):
        make_checksum("x", "md5")
