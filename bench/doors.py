"""How long a message takes to be read, by each door of each CLI and by typing: `python -m bench.doors FOLDER`.

FOLDER holds the real CLIs (`scripts/real_clis.py FOLDER` installs them); the model is a script on loopback that answers at once,
and everything runs in a namespace without a network. One message at a time, each to an agent that is idle again. The time is
the daemon's own: from the moment the message is stored to the moment its reading is reported. Doors that reach only a working
agent are measured from the end of the agent's answer, which is when they can hand it over.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent_relay.sdk.sync import SyncRelayClient
from bench.process import describe_machine
from tests.real_clis.codex_trust import UNSERVED, start_queueless
from tests.real_clis.door_clis import DOOR_CLIS
from tests.real_clis.harness import Agent, Lab, until
from tests.real_clis.model.script import Script, Turn, on_message
from tests.real_clis.offline import is_offline

TYPING = "typing"
MESSAGES = 20
COUNT = Turn(on_message("count"), say="counted", drips=True)
_DEADLINE_S = 120.0


class Way(NamedTuple):
    """`needs_work`: it takes messages only while the agent works. `start` is for an agent that takes more than flags, and
    `prepare` closes the better doors first."""

    name: str
    cli: str
    flags: tuple[str, ...] = ()
    needs_work: bool = False
    start: Callable[[Lab, str], Agent] | None = None
    prepare: Callable[[Lab, Agent], None] | None = None


class Row(NamedTuple):
    """`failure`: why there are no numbers. A way that loses a message, or takes another way, has none."""

    way: Way
    took_ms: list[int]
    proof: str
    failure: str = ""

    def at(self, percent: int) -> int:
        return sorted(self.took_ms)[min(len(self.took_ms) * percent // 100, len(self.took_ms) - 1)]


WAYS = (
    Way("claude inbox", "claude"),
    Way("claude stop hook", "claude", needs_work=True, prepare=DOOR_CLIS["claude"].take_away),
    Way(TYPING, "claude"),
    Way("codex app-server", "codex"),
    Way("codex queue", "codex", flags=(UNSERVED,)),
    Way("codex stop hook", "codex", needs_work=True, start=start_queueless),
    Way(TYPING, "codex"),
    Way("opencode server", "opencode"),
    Way(TYPING, "opencode"),
    Way("gemini hooks", "gemini", needs_work=True),
    Way(TYPING, "gemini"),
)


class Meter:
    """One agent, one way in, one message after the other."""

    def __init__(self, lab: Lab, way: Way, observer: SyncRelayClient, sender: SyncRelayClient) -> None:
        self._way, self._observer, self._sender = way, observer, sender
        if way.start is not None:
            self._agent = way.start(lab, "Bob")
        else:
            self._agent = lab.start(way.cli, "Bob", doors=way.name != TYPING, flags=way.flags)
        self._give("before the first")  # some ways need a conversation that has begun
        if way.prepare is not None:
            way.prepare(lab, self._agent)
            self._send_while_it_works("after the better door")

    def measure(self, messages: int) -> Row:
        took_ms, proofs = [], set()
        for number in range(1, messages + 1):
            step, ms = self._send_while_it_works(f"note {number}") if self._way.needs_work else self._give(f"note {number}")
            assert step["door"] == self._way.name, f"Note {number} went by {step['door']}."
            took_ms.append(ms)
            proofs.add(str(step.get("evidence")))
        return Row(self._way, took_ms, ", ".join(sorted(proofs)))

    def _give(self, body: str) -> tuple[dict[str, Any], int]:
        self._wait_until_idle()
        message_id = self._sender.send("Bob", body).message_id
        step = self._wait_until_read(message_id)
        return step, int(step["at"]) - int(self._observer.message(message_id).message["ts"])

    def _send_while_it_works(self, body: str) -> tuple[dict[str, Any], int]:
        self._wait_until_idle()
        script = self._agent.model.script = Script([COUNT])
        self._sender.send("Bob", f"count before {body}")
        self._until(lambda: script.is_dripping.is_set() and self._state() == "working", "it works")
        message_id = self._sender.send("Bob", body).message_id
        self._until(lambda: "handed" in self._trail(message_id), "it is handed over")
        began_ms = time.time_ns() // 1_000_000
        script.release()
        step = self._wait_until_read(message_id)
        return step, int(step["at"]) - began_ms

    def _wait_until_idle(self) -> None:
        self._until(lambda: self._state() == "idle", "it is idle")

    def _state(self) -> str:
        """As everybody sees it; `owed` while it has something to acknowledge."""
        mine = self._observer.agents().find("Bob")
        assert mine is not None
        return "owed" if mine.queue_depth else str(mine.state)

    def _wait_until_read(self, message_id: str) -> dict[str, Any]:
        """The step that tells of it, and the door. Where no session file does, what was seen on the screen has to do."""
        wanted = "read" if self._way.name != TYPING or self._agent.cli.has_transcript else "injected"
        self._until(lambda: wanted in self._trail(message_id), wanted)
        trail = self._trail(message_id)
        return {**trail[wanted], "door": trail["injected"]["door"]}

    def _trail(self, message_id: str) -> dict[str, dict[str, Any]]:
        return {str(step["event"]): step for step in self._observer.message(message_id).trail}

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, f"{self._way.cli} by {self._way.name}: {what}", self._agent.describe, _DEADLINE_S)


def run(folder: Path, ways: Sequence[Way], messages: int) -> Iterator[Row]:
    for way in ways:
        lab = Lab(folder)
        try:
            with lab.daemon.connect_sync(observer=True) as observer, lab.client("Eve") as sender:
                yield Meter(lab, way, observer, sender).measure(messages)
        except AssertionError as error:
            yield Row(way, [], "", str(error).partition("\n")[0])
        finally:
            lab.close()


def format_row(row: Row) -> str:
    if row.failure:
        return f"{row.way.cli:<9} {row.way.name:<17} FAILED: {row.failure}"
    since = "the end of its answer" if row.way.needs_work else "stored"
    return f"{row.way.cli:<9} {row.way.name:<17} {row.at(50):>7,} {row.at(95):>7,}   {since:<22} {row.proof}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.doors", description="From relay to read, by each door and by typing.")
    parser.add_argument("folder", type=Path, help="where scripts/real_clis.py has installed the CLIs")
    parser.add_argument("--only", action="append", metavar="CLI", choices=sorted(DOOR_CLIS), help="one of the CLIs")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    options = parser.parse_args(arguments)
    if not is_offline():
        command = [sys.executable, "-m", "tests.real_clis.offline", sys.executable, "-m", "bench.doors", *arguments]
        return subprocess.run(command, check=False).returncode
    print(f"{describe_machine(tempfile.gettempdir())}, {options.messages} messages each\n")
    print(f"{'CLI':<9} {'way':<17} {'p50 ms':>7} {'p95 ms':>7}   {'since':<22} read by", flush=True)
    has_failed = False
    for row in run(options.folder.resolve(), [way for way in WAYS if way.cli in (options.only or DOOR_CLIS)], options.messages):
        print(format_row(row), flush=True)
        has_failed |= bool(row.failure)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
