"""A daemon of another version: `python -P other_version.py earlier|later daemon's arguments …`.

It runs in the daemon's process and changes only what goes over the wire. The earlier one is the first that had a cluster: it
knows no documents in records, and no claim that gives the seat back. The later one says more than this version knows wherever it
may: in claims, in words of hosts and of the seat, and at the end of every packet of a link.
"""

from __future__ import annotations

import sys
from typing import Any

EARLIER, LATER = "0.0.9", "9.9.9"


def be_earlier() -> None:
    import msgspec

    from agent_relay.cluster import records, seat
    from agent_relay.daemon.cluster import host

    decode, encode = records._decode, records.encode_batch

    def decode_strictly(content: bytes) -> Any:
        if "documents" in msgspec.msgpack.decode(content):
            raise msgspec.ValidationError("Object contains unknown field `documents`")
        return decode(content)

    def encode_without(batch: Any) -> bytes:
        return encode(msgspec.structs.replace(batch, documents={}))

    def do_not_resign(self: Any, done: Any) -> None:
        del self
        done()

    records._decode, records.encode_batch = decode_strictly, encode_without
    seat.Seat.resign = do_not_resign  # type: ignore[method-assign]
    host.__version__ = EARLIER


def be_later() -> None:
    import msgspec

    from agent_relay.cluster import link, records, seat
    from agent_relay.daemon.cluster import host

    class LaterWord(host.HostWord, frozen=True):
        wonders: int = 7

    class LaterAlive(seat.Alive, frozen=True):
        wonders: int = 7

    class LaterClaim(records.Claim, frozen=True):
        wonders: int = 7

    encode = link._encode

    def encode_more(packet: Any) -> bytes:
        return encode([*packet, {"wonders": 7}])

    def encode_claim(claim: records.Claim) -> bytes:
        return b"C" + msgspec.json.encode(LaterClaim(*msgspec.structs.astuple(claim), wonders=8))

    host.HostWord, seat.Alive, seat.encode_claim, link._encode = LaterWord, LaterAlive, encode_claim, encode_more  # type: ignore
    host.__version__ = LATER


VERSIONS = {"earlier": be_earlier, "later": be_later}

if __name__ == "__main__":
    VERSIONS[sys.argv.pop(1)]()
    from agent_relay.daemon.main import main

    sys.exit(main())
