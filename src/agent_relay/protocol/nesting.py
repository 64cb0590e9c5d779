"""The depth of nested JSON. What the daemon forwards unread must be readable to whoever gets it.

Readers of JSON recurse, and where they give up depends on the reader and on how deep its stack already is. A message
that one side can still read and the other cannot would be delivered again and again, so there is a limit of our own.
"""

from __future__ import annotations

from itertools import accumulate

from msgspec import Raw

MAX_NESTING = 256  # a quarter of what Python's readers manage on an empty stack, and far beyond what people write
SHALLOW_BYTES = 2 * MAX_NESTING  # a level is at least two bytes, so nothing this short can be over the limit

_STEPS = bytes(1 if byte in b"[{" else 255 if byte in b"]}" else 0 for byte in range(256))  # 255 is -1 as a signed byte
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def is_too_deep(json: bytes | Raw) -> bool:
    """`json` must be known to be well-formed."""
    if len(json) <= SHALLOW_BYTES:
        return False
    text = bytes(json)
    if text.count(b"[") + text.count(b"{") <= MAX_NESTING:
        return False
    return measure_nesting(text) > MAX_NESTING


def measure_nesting(json: bytes) -> int:
    """The number of arrays and objects around the innermost value: 0 for a number, 1 for `[]`."""
    without_escapes = json.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = b"".join(without_escapes.split(b'"')[::2])
    steps = memoryview(outside_strings.translate(_STEPS, _NOT_BRACKETS)).cast("b")
    return max(accumulate(steps), default=0)
