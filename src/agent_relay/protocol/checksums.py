"""`algorithm:hex` of a body's UTF-8 bytes: sha256 is what we write, crc32 is read as well."""

from __future__ import annotations

import hashlib
import re
import zlib

from agent_relay.protocol.errors import ErrorCode, RelayError

_CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}|crc32:[0-9a-f]{8}", re.ASCII | re.IGNORECASE)


def is_checksum(text: str) -> bool:
    return _CHECKSUM.fullmatch(text) is not None


def make_checksum(body: str, algorithm: str = "sha256") -> str:
    data = body.encode()
    if algorithm == "sha256":
        return "sha256:" + hashlib.sha256(data).hexdigest()
    if algorithm == "crc32":
        return f"crc32:{zlib.crc32(data):08x}"
    raise ValueError(f"unknown checksum algorithm {algorithm!r}: sha256 or crc32")


def check_checksum(body: str, checksum: str) -> None:
    """Raises CHECKSUM_MISMATCH unless the checksum is well-formed and of this body."""
    algorithm = checksum.partition(":")[0].lower()
    if is_checksum(checksum) and make_checksum(body, algorithm) == checksum.lower():
        return
    raise RelayError(
        ErrorCode.CHECKSUM_MISMATCH,
        f"The checksum does not match the body: expected {algorithm if is_checksum(checksum) else 'sha256'} of "
        f"{len(body.encode())} bytes of UTF-8.",
        field="payload_meta.checksum",
    )
