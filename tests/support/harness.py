"""The relay's core in a test's hands: a clock that stands still, a store that fails or waits on demand, clients that record.

    relay = RelayHarness(queue_capacity=10)
    alice, bob = relay.connect("Alice"), relay.connect("Bob", max_inflight=1)
    alice.send("Bob", "hello")
    bob.ack(bob.take_one("DELIVER"))
    relay.store.fail_next()      # the next write is refused
    relay.store.hold()           # writes wait until `release`
    relay.advance(5_000)         # time passes, as the daemon's ticks would tell it
    relay.restart()              # kill -9, and a new core over what was durable

Nothing waits and nothing is random, so a test says exactly what happens when.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from agent_relay.core.limits import Limits
from agent_relay.core.peer import Peer
from agent_relay.core.policy import Policy
from agent_relay.core.relay import PAUSE_MS, Relay
from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.connection import FULL_BYTES
from agent_relay.ports.names import NameTraits
from agent_relay.ports.relay import PLAIN, PeerTraits
from agent_relay.protocol.states import CloseReason
from tests.support.controlled_store import ControlledStore
from tests.support.event_driver import HarnessEvents

Frame = dict[str, Any]

START_STEADY_MS = 1_000
START_WALL_MS = 1_800_000_000_000
TICK_MS = 50  # as the daemon ticks
_NEVER_MS = 10**13
UID = 1_000
OWNER_TOKEN = "of-the-owner"
CAPABILITIES = {
    "ack": True, "resume": True, "supports_topics": True, "sync": True, "backpressure": True, "checksums": True,
    "sequences": True, "priorities": True, "channels": True,
}  # fmt: skip


class FixedEntropy:
    """`ports.Entropy` that repeats itself: the fraction is what the test says, bits and tokens count up."""

    def __init__(self) -> None:
        self.next_fraction = 0.5  # the middle: no jitter
        self._count = 0

    def fraction(self) -> float:
        return self.next_fraction

    def bits(self, count: int) -> int:
        self._count += 1
        return self._count % (1 << count)

    def token(self) -> str:
        self._count += 1
        return f"token-{self._count:037d}"


class RecordingLog:
    """`ports.Log`: every note, to be looked at."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, dict[str, object]]] = []

    def note(self, what: str, **fields: object) -> None:
        self.notes.append((what, fields))

    def named(self, what: str) -> list[dict[str, object]]:
        return [fields for name, fields in self.notes if name == what]


class HarnessConnection:
    """`ports.Connection`: takes every frame at once, or, while stalled, none."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self.notify_drained = False
        self.frames: list[Frame] = []
        self.closed: CloseReason | None = None
        self.stalled = False
        self.process = OWNER  # in whose terminal it runs
        self.programs: list[tuple[str, int | None]] = []  # what it said it runs

    @property
    def is_full(self) -> bool:
        return self.unsent_bytes > FULL_BYTES

    def send(self, frame: bytes) -> None:
        if self.closed is not None:
            raise AssertionError(f"A frame was sent after the connection was closed ({self.closed}): {frame[4:200]!r}")
        length, body = int.from_bytes(frame[:4], "big"), frame[4:]
        if length != len(body):
            raise AssertionError(f"A frame says {length} bytes and has {len(body)}.")
        self.frames.append(json.loads(body))
        if self.stalled:
            self.unsent_bytes += len(frame)

    def send_all(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.send(frame)

    def caller(self) -> Caller:
        return self.process

    def runs(self, agent: str, pid: int | None) -> None:
        self.programs.append((agent, pid))

    def close(self, reason: CloseReason) -> None:
        if self.closed is not None:
            raise AssertionError(f"The connection was closed twice: {self.closed}, then {reason}.")
        self.closed = reason


class RemoteHarnessConnection(HarnessConnection):
    """`ports.RemoteConnection`: of a client on another host of the cluster, whose owner has the same token."""

    owner_proof = hashlib.sha256(OWNER_TOKEN.encode()).hexdigest()

    def __init__(self, host: str) -> None:
        super().__init__()
        self.host = host
        self.process = Caller(host=host)


class HarnessClient:
    """One connection to the core. Frames it was sent stay in `frames` until they are taken."""

    def __init__(self, harness: RelayHarness, uid: int, traits: PeerTraits = PLAIN, host: str = "") -> None:
        self.name = ""
        self.welcome: dict[str, Any] = {}  # the payload of the last WELCOME or SYNC
        self.connection = RemoteHarnessConnection(host) if host else HarnessConnection()
        self._harness = harness
        self.peer: Peer = harness.relay.accepted(self.connection, uid, traits)

    # --- what it says -----------------------------------------------------------------------------------------------

    def frame(self, kind: str, payload: Any, *, id: str | None = None, **fields: Any) -> Frame:  # noqa: A002 - as on the wire
        """An envelope that is not sent yet."""
        given = {name: value for name, value in fields.items() if value is not None}
        return {
            "v": 2, "type": kind, "id": self._harness.fresh_id() if id is None else id, "ts": self._harness.wall_ms,
            "payload": payload, **given,
        }  # fmt: skip

    def say_frames(self, *frames: Frame | bytes) -> None:
        """All of them in one turn, as if they had come in one chunk; bytes are sent as they are."""
        encoded = [frame if isinstance(frame, bytes) else json.dumps(frame).encode() for frame in frames]
        self._harness.turn(lambda: self._harness.relay.received(self.peer, encoded))

    def say(self, kind: str, payload: Any, **fields: Any) -> str:
        """One frame; returns its id."""
        frame = self.frame(kind, payload, **fields)
        self.say_frames(frame)
        return str(frame["id"])

    def message(self, to: Any = None, body: Any = "x", *, meta: Any = None, payload: Any = None, **fields: Any) -> Frame:
        """A SEND that is not sent yet; `payload` holds further fields beside the body."""
        return self.frame("SEND", {"body": body, **(payload or {})}, to=to, payload_meta=meta, **fields)

    def send(self, to: Any = None, body: Any = "x", **options: Any) -> str:
        frame = self.message(to, body, **options)
        self.say_frames(frame)
        return str(frame["id"])

    def ack(self, deliver: Frame, **more: Any) -> None:
        self.say("ACK", {"ack_id": deliver["id"], "seq": deliver["delivery"]["seq"], **more})

    def nack(self, deliver: Frame, code: str, **more: Any) -> None:
        self.say("NACK", {"nack_id": deliver["id"], "code": code, **more})

    def hello(
        self, name: str, *, token: str | None = None, capabilities: dict[str, Any] | None = None,
        owner_token: str | None = OWNER_TOKEN, **payload: Any,
    ) -> None:  # fmt: skip
        """As the SDK says it, which reads the owner's token where it can."""
        self.name = name
        content: dict[str, Any] = {"agent": name, "version": 2, "capabilities": CAPABILITIES | (capabilities or {}), **payload}
        tokens = {"resume_token": token, "owner_token": owner_token}
        content["session"] = {kind: value for kind, value in tokens.items() if value is not None}
        self.say("HELLO", content)

    def resume(self, name: str, token: str, streams: Any = (), **payload: Any) -> None:
        self.name = name
        self.say("RESUME", {"agent": name, "resume_token": token, "streams": streams, **payload})

    def drop(self) -> None:
        """The connection is gone without a word."""
        self._harness.turn(lambda: self._harness.relay.disconnected(self.peer))

    def stall(self, unsent_bytes: int = 0) -> None:
        """From now on it reads nothing; so many bytes wait already."""
        self.connection.stalled = True
        self.connection.unsent_bytes = unsent_bytes

    def read_all(self) -> None:
        """It reads again, everything that waited."""
        self.connection.stalled = False
        self.connection.unsent_bytes = 0
        self._harness.settle()

    # --- what it was told -------------------------------------------------------------------------------------------

    @property
    def frames(self) -> list[Frame]:
        return self.connection.frames

    @property
    def token(self) -> str:
        return str(self.welcome["resume_token"])

    @property
    def closed(self) -> CloseReason | None:
        return self.connection.closed

    def take(self, *kinds: str) -> list[Frame]:
        """Every frame of these types (all, if none is named) since the last take, in order."""
        found = [frame for frame in self.frames if not kinds or frame["type"] in kinds]
        self.connection.frames = [frame for frame in self.frames if frame not in found]
        return found

    def take_one(self, kind: str) -> Frame:
        """The one frame of this type; there must be exactly one."""
        found = self.take(kind)
        if len(found) != 1:
            raise AssertionError(f"{self.name} has {len(found)} frames of type {kind}: {found}; others: {self.frames}")
        return found[0]

    def payload(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = self.take_one(kind)["payload"]
        return found

    def stored(self) -> list[dict[str, Any]]:
        """The payloads of all `stored` ACKs since the last take."""
        return [frame["payload"] for frame in self._take_stage("stored")]

    def delivered(self) -> list[dict[str, Any]]:
        """The payloads of all `delivered` ACKs since the last take."""
        return [frame["payload"] for frame in self._take_stage("delivered")]

    def bodies(self) -> list[str]:
        """The bodies of all DELIVERs since the last take."""
        return [frame["payload"]["body"] for frame in self.take("DELIVER")]

    def _take_stage(self, stage: str) -> list[Frame]:
        found = [frame for frame in self.frames if frame["type"] == "ACK" and frame["payload"].get("stage") == stage]
        self.connection.frames = [frame for frame in self.frames if frame not in found]
        return found


class RelayHarness:
    """A core over a `ControlledStore`. `limits` are fields of `Limits`; time-outs of connections are off unless named."""

    def __init__(
        self,
        store: ControlledStore | None = None,
        *,
        policy: Policy | None = None,
        registered: NameTraits | None = None,
        host: str = "",
        **limits: Any,
    ) -> None:
        self._host = host  # in the cluster
        self._policy = policy
        self._registered = registered
        self.limits = Limits(**({"heartbeat_ms": _NEVER_MS, "handshake_timeout_ms": _NEVER_MS} | limits))
        self.store = store if store is not None else ControlledStore()
        self.events = HarnessEvents()
        self.log = RecordingLog()
        self.entropy = FixedEntropy()
        self.steady_ms = START_STEADY_MS
        self.wall_ms = START_WALL_MS
        self.gathers = False  # True: what the relay gathers waits until the test says `gathered`
        self._clients: list[HarnessClient] = []
        self._ids = 0
        self.relay = self._start()

    def fresh_id(self) -> str:
        self._ids += 1
        return f"c-{self._ids}"

    # --- clients ----------------------------------------------------------------------------------------------------

    def open(self, uid: int = UID, traits: PeerTraits = PLAIN, host: str = "") -> HarnessClient:
        """A connection that has said nothing yet; `host`: from another one of the cluster."""
        client = HarnessClient(self, uid, traits, host)
        self._clients.append(client)
        return client

    def connect(
        self,
        name: str,
        *,
        uid: int = UID,
        traits: PeerTraits = PLAIN,
        max_inflight: int | None = None,
        capabilities: dict[str, Any] | None = None,
        host: str = "",
        **hello: Any,
    ) -> HarnessClient:
        """An agent whose HELLO must be welcomed; capabilities go over those of a client that can do everything."""
        client = self.open(uid, traits, host)
        window = {} if max_inflight is None else {"max_inflight": max_inflight}
        client.hello(name, capabilities=window | (capabilities or {}), **hello)
        client.welcome = client.payload("WELCOME")
        return client

    # --- time and turns -----------------------------------------------------------------------------------------------

    def turn(self, happens: Callable[[], None]) -> None:
        """Something happens, the turn ends, and the store answers as far as it is let."""
        self.relay.clock_says(self.steady_ms, self.wall_ms)
        happens()
        self.relay.turn_ended()
        self.settle()

    def settle(self) -> None:
        """Runs everything that is due now: answers of the store, and connections that have drained."""
        while self.store.step() or self._drain_one() or self.events.step() or self._end_gathering():
            self.relay.turn_ended()

    def _end_gathering(self) -> bool:
        ends = self.relay.is_gathering and not self.gathers
        if ends:
            self.relay.gathered()
        return ends

    def advance(self, milliseconds: int, *, step_ms: int = TICK_MS) -> None:
        """Lets time pass, a tick every `step_ms` (longer ones for a long time)."""
        step_ms = max(step_ms, milliseconds // 2_000)
        left = milliseconds
        while left > 0:
            step = min(step_ms, left)
            left -= step
            self.pass_by(step)
            if step >= PAUSE_MS:  # only the tick after a pause does what has become due
                self.tick()

    def pass_by(self, milliseconds: int) -> None:
        """Time passes without a tick, as for a daemon that is stopped, and then there is one."""
        self.steady_ms += milliseconds
        self.wall_ms += milliseconds
        self.tick()

    def tick(self) -> None:
        self.turn(self.relay.tick)

    def _drain_one(self) -> bool:
        for client in self._clients:
            connection = client.connection
            if connection.notify_drained and not connection.stalled and not client.peer.closed:
                connection.notify_drained = False
                self.relay.drained(client.peer)
                return True
        return False

    # --- lives of the daemon ------------------------------------------------------------------------------------------

    def restart(self, *, wall_ms_later: int = 0) -> None:
        """kill -9, and a new core over what the store holds; connections are gone, and the steady clock starts anew."""
        self.store.crash()
        self._clients.clear()
        self.steady_ms = START_STEADY_MS
        self.wall_ms += wall_ms_later
        self.relay = self._start()

    def _start(self) -> Relay:
        snapshot = self.store.open()
        return Relay(
            self.limits, self.store, self.entropy, self.log, snapshot, self.steady_ms, self.wall_ms,
            policy=self._policy, events=self.events.recorder, bus=self.events.bus, owner_token=OWNER_TOKEN,
            registered=self._registered, host=self._host,
        )  # fmt: skip


def connect_pair(max_inflight: int | None = None, **limits: Any) -> tuple[RelayHarness, HarnessClient, HarnessClient]:
    """A core, Alice and Bob; `max_inflight` is Bob's."""
    relay = RelayHarness(**limits)
    return relay, relay.connect("Alice"), relay.connect("Bob", max_inflight=max_inflight)
