"""Wire contract, section 8: what ERROR and NACK carry. Every frame of every test is held to the table as well."""

from __future__ import annotations

from agent_relay.testing.raw_client import RawClient, encode

from .contract import V1_CODES
from .relay import Relay


def collect_refusals(relay: Relay, client: RawClient) -> dict[str, dict[str, object]]:
    """One refusal of each kind that is easy to provoke: code → payload."""
    client.send(relay.name("Nobody"), "x")
    client.send("#" + relay.name("nowhere"), "x")
    client.send(client.name, 5)
    client.send(client.name, "x", meta={"checksum": "sha256:" + "0" * 64})
    client.write_frame({**client.message(client.name), "from": "Somebody"})
    client.say("TELEPORT", {})
    client.write(encode(b"nonsense"))
    client.flush()
    return {frame["payload"]["code"]: frame["payload"] for frame in client.listen(0, "ERROR", "NACK")}


NEAREST_V1 = {
    "AGENT_NOT_FOUND": "NOT_FOUND",
    "CHANNEL_NOT_FOUND": "NOT_FOUND",
    "INVALID_FORMAT": "BAD_REQUEST",
    "CHECKSUM_MISMATCH": "BAD_REQUEST",
    "PERMISSION_DENIED": "UNAUTHORIZED",
    "FEATURE_UNSUPPORTED": "BAD_REQUEST",
}


def test_a_v1_client_is_told_the_old_code_beside_the_new_one(relay: Relay) -> None:
    found = collect_refusals(relay, relay.join(version=1))
    assert set(found) == set(NEAREST_V1)
    for code, nearest in NEAREST_V1.items():
        details = found[code]["details"]
        assert isinstance(details, dict)
        assert details["v1_code"] == nearest
        assert details["v1_code"] in V1_CODES


def test_a_v2_client_is_not(relay: Relay) -> None:
    found = collect_refusals(relay, relay.join(version=2))
    assert set(found) == set(NEAREST_V1)
    for payload in found.values():
        assert "v1_code" not in (payload.get("details") or {})  # type: ignore[operator]


def test_an_error_never_repeats_the_body_it_refuses(relay: Relay) -> None:
    client = relay.join()
    secret = "the-launch-code-is-0000"
    for frame in (
        client.message(client.name, secret, meta={"checksum": "sha256:" + "0" * 64}),
        client.message(relay.name("Nobody"), secret),
        client.message(client.name, secret, meta={"priority": 77}),
        {**client.message(client.name, secret), "v": 9},
    ):
        client.write_frame(frame)
        assert secret not in str(client.expect("NACK", "ERROR"))
