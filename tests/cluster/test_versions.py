"""Two versions side by side, as while a cluster is upgraded: real daemons, one of which speaks as another version."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.hosts import Hosts, joined
from tests.cluster.other_version import EARLIER, LATER
from tests.cluster.test_presence import PATIENCE_S, roles, run, see, wait_until
from tests.support.nats_servers import run_servers


class Upgrade:
    """Hosts `old` and `new`, of which `old` begins with the seat, and `other` names the one that is of another version."""

    def __init__(self, hosts: Hosts, capsys: pytest.CaptureFixture[str]) -> None:
        self.hosts = hosts
        self.capsys = capsys
        self.own = hosts["a"].command
        self.sent: list[str] = []

    def speak_as(self, host: str, version: str | None) -> None:
        launcher = [sys.executable, "-P", str(Path(__file__).with_name("other_version.py"))]
        self.hosts[host].command = self.own if version is None else [*launcher, version]

    def begin(self) -> None:
        """First `a`, which so has the seat, and then `b`."""
        for host in "ab":
            self.hosts[host].start()
            with joined(self.hosts[host], f"{host}0"):
                pass
        self.wait_for_seat("a")

    def see(self, host: str) -> dict[str, Any]:
        return see(self.capsys, self.hosts[host])

    def wait_for_seat(self, host: str) -> None:
        others = [name for name in "ab" if self.hosts[name].running]
        wait_until(
            lambda: all(self.see(name).get("seat") == host for name in others), f"{host} does not have the seat everywhere"
        )

    def wait_for_version(self, version: str) -> None:
        """Of `a`, as `b` sees it."""
        wait_until(
            lambda: any((each["host"], each["version"]) == ("a", version) for each in self.see("b")["hosts"]),
            f"b does not see that a is {version}",
        )

    def talk(self) -> None:
        """A message in both directions, which arrives once and is in the history that each host shows."""
        pair: tuple[DaemonProcess, DaemonProcess] = (self.hosts["a"], self.hosts["b"])
        for sender, recipient in (pair, pair[::-1]):
            word = f"word-{len(self.sent)}"
            with joined(recipient, f"Reader-{word}") as reader:
                with joined(sender, f"Writer-{word}") as writer:
                    writer.send(f"Reader-{word}", word)
                with next(iter(reader.messages(timeout=PATIENCE_S))) as message:
                    assert message.body == word
            self.sent.append(word)
        for daemon in pair:
            self.check_history(daemon)

    def check_history(self, daemon: DaemonProcess) -> None:
        with joined(daemon, f"Looker-{time.monotonic_ns()}") as looker:
            found = [message["payload"]["body"] for message in looker.history(limit=100).messages]
        assert sorted(found) == sorted(self.sent)


@pytest.fixture
def upgrade(capsys: pytest.CaptureFixture[str]) -> Iterator[Upgrade]:
    with run_servers(1) as servers:
        hosts = Hosts(servers, 2)
        try:
            yield Upgrade(hosts, capsys)
        finally:
            hosts.remove()


def test_an_earlier_version_is_served_until_it_is_upgraded_and_never_has_a_seat_it_cannot_read(upgrade: Upgrade) -> None:
    upgrade.speak_as("a", "earlier")
    upgrade.begin()
    upgrade.talk()  # a new edge at an old seat
    upgrade.wait_for_version(EARLIER)
    assert f"a runs agent-relay {EARLIER}" in run(upgrade.capsys, upgrade.hosts["b"], "doctor")[1]

    upgrade.hosts["a"].terminate()
    upgrade.wait_for_seat("b")
    upgrade.hosts["a"].start()
    upgrade.wait_for_seat("b")
    upgrade.talk()  # an old edge at a new seat: its copy stops, its clients are served
    wait_until(
        lambda: any(note["event"] == "cluster_record_unreadable" for note in upgrade.hosts.notes("a")),
        "the new version has written nothing that the old one cannot read",
    )
    upgrade.talk()

    upgrade.hosts["b"].kill()
    wait_until(lambda: "update this host's agent-relay" in upgrade.see("a").get("trouble", ""), "the old host does not say why")
    assert roles(upgrade.see("a"))["a"] == "edge"
    upgrade.hosts["b"].start()
    upgrade.wait_for_seat("b")
    upgrade.talk()

    upgrade.hosts["a"].terminate()
    upgrade.speak_as("a", None)
    upgrade.hosts["a"].start()  # upgraded: it copies the rest, and may have the seat
    upgrade.wait_for_seat("b")
    end = next(host["position"] for host in upgrade.see("b")["hosts"] if host["host"] == "b")
    wait_until(
        lambda: next(host["position"] for host in upgrade.see("a")["hosts"] if host["is_self"]) >= end, "it does not catch up"
    )
    upgrade.hosts["b"].kill()
    upgrade.wait_for_seat("a")
    upgrade.check_history(upgrade.hosts["a"])


def test_a_later_version_may_say_more_at_either_end(upgrade: Upgrade) -> None:
    upgrade.speak_as("a", "later")
    upgrade.begin()
    upgrade.talk()
    upgrade.wait_for_version(LATER)
    upgrade.hosts["a"].terminate()
    upgrade.wait_for_seat("b")
    upgrade.hosts["a"].start()
    upgrade.wait_for_seat("b")
    upgrade.talk()
    upgrade.hosts["b"].terminate()
    upgrade.wait_for_seat("a")
    upgrade.check_history(upgrade.hosts["a"])
