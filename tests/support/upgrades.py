"""What a daemon must be able to do with a database of an earlier release, whichever store it is of."""

from __future__ import annotations

from typing import Any

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient


def check_goes_on(daemon: DaemonProcess, said: dict[str, Any]) -> None:
    """What was owed is delivered, and the numbers go on; `said` is what the earlier release was told and told."""
    for name in ("Alice", "Bob", "Carol", "Dan"):
        with RawClient(daemon.socket) as client:
            client.hello(name, token=said["tokens"][name])
            owed = said["owed"].get(name, [])
            got = [
                [frame["from"], frame.get("topic", ""), frame["delivery"]["seq"], frame["payload"]["body"]]
                for frame in client.deliveries(len(owed))
            ]
            assert got == owed, name
            client.expect_none("DELIVER")
            said["tokens"][name] = client.token
    with RawClient(daemon.socket) as alice, RawClient(daemon.socket) as bob:
        alice.hello("Alice", token=said["tokens"]["Alice"])
        bob.hello("Bob", token=said["tokens"]["Bob"])
        alice.send_stored("Bob", "the next")
        assert bob.deliveries(1)[0]["delivery"]["seq"] == 7
        kept = alice.request("HISTORY", {"limit": 100})["messages"]
        assert {row[1] for rows in said["stored"].values() for row in rows} <= {message["message_id"] for message in kept}
        (dead,) = alice.request("HISTORY", {"view": "dead_letters"})["messages"]
        assert dead["payload"]["body"] == "never read"
