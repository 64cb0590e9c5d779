"""The session: a connection that comes back.

Theory of operation. One task runs the life of `protocol.states.CLIENT`: connect, shake hands, be ready until the
connection is lost, back off, connect again with the newest resume token. What happens on a connection (WELCOME, a
refusal, BYE) is handled where the frame arrives, so that whatever follows in the same chunk meets the new state; the
task only waits. The session keeps no message: its owner sends again what is unanswered when it is told `on_ready`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.envelope import Bye, DaemonFrame, Error, Nack, Welcome
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.framing import HEADER_BYTES
from agent_relay.protocol.payloads import WelcomePayload
from agent_relay.protocol.states import CLIENT, ClientEvent, ClientState, CloseReason, advance
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.connection import Connection, open_connection
from agent_relay.sdk.errors import ConnectionLost, DaemonNotRunning, StrangerAtSocket, read_error
from agent_relay.sdk.ids import IdSource, wall_ms

_FINAL_BYES: dict[str, str] = {
    CloseReason.SUPERSEDED: "Another client took over this agent's name with its resume token.",
    CloseReason.REVOKED: "The daemon revoked this session: its resume token was used a second time.",
}
_TOO_OLD: set[str] = {ErrorCode.RESUME_TOO_OLD, ErrorCode.STALE}
_GOODBYE_S = 1.0  # how long a closing connection may take to write its last bytes


class SessionOwner(Protocol):
    def on_ready(self) -> None: ...

    def on_frame(self, frame: DaemonFrame) -> None: ...

    def on_closed(self, error: RelayError | None) -> None: ...

    def on_state(self, state: ClientState) -> None: ...


@dataclass(slots=True)
class Greeting:
    """The content of HELLO, and the token it goes with."""

    payload: dict[str, Any]
    resume_token: str | None = None
    owner_token: str | None = None

    def encode(self, id_: str) -> bytes:
        payload = dict(self.payload)
        tokens = {"resume_token": self.resume_token, "owner_token": self.owner_token}
        session = {name: token for name, token in tokens.items() if token}
        if session:
            payload["session"] = session
        return encode_envelope("HELLO", id_, wall_ms(), payload)


class Session:
    def __init__(
        self,
        socket: str,
        greeting: Greeting,
        owner: SessionOwner,
        *,
        backoff: Backoff,
        attempts: int | None,
        connect_timeout: float,
    ) -> None:
        self.socket = socket
        self.greeting = greeting
        self.ids = IdSource()
        self.state = ClientState.DISCONNECTED
        self.error: RelayError | None = None  # why it is closed, where that was not asked for
        self.welcome: WelcomePayload | None = None  # the newest
        self.connections = 0  # how many times it was welcomed
        self._owner = owner
        self._backoff = backoff
        self._attempts = attempts
        self._connect_timeout = connect_timeout
        self._wait_at_start = False
        self._settled = asyncio.Event()  # the first WELCOME, or the first failure where that is the last
        self._waits = 0  # since the last WELCOME
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._verdict: asyncio.Future[RelayError | None] | None = None  # of the handshake; None: welcomed
        self._farewell: RelayError | None = None  # what the daemon said before it closed the connection

    # --- for the owner --------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        return self.state is ClientState.READY

    def write(self, frame: bytes) -> bool:
        """False: there is no connection to write to now."""
        if self.state is not ClientState.READY or self._connection is None or not self._connection.open:
            return False
        self._connection.send(frame)
        return True

    def check(self) -> None:
        """Raises unless there is a connection, or one is being made again."""
        if self.state is ClientState.CLOSED:
            raise self.error or ConnectionLost("The client is closed.", reason="closed")
        if self.state is ClientState.DISCONNECTED:
            raise ConnectionLost("The client is not connected: use it in `async with`, or call connect() first.", reason="new")

    def check_size(self, frame: bytes) -> None:
        """Raises for a frame the daemon would not take; it would end the connection instead of answering."""
        limit = self.welcome.server.max_frame_bytes if self.welcome is not None else None
        size = len(frame) - HEADER_BYTES
        if limit is not None and size > limit:
            raise RelayError(
                ErrorCode.MESSAGE_TOO_LARGE, f"The message takes {size} bytes; the daemon accepts {limit}.", max_frame_bytes=limit
            )

    async def start(self, *, wait: bool) -> None:
        """Returns when the daemon has said WELCOME. Without `wait`, the first failure is the last."""
        if self.state is not ClientState.DISCONNECTED:
            raise ConnectionLost("A client can connect only once; create another one.", reason="used")
        self._wait_at_start = wait
        self._task = asyncio.create_task(self._run(), name="agent-relay session")
        try:
            await self._settled.wait()
        except asyncio.CancelledError:
            await self.stop()
            raise
        if self.error is not None:
            await asyncio.wait([self._task])
            raise self.error

    async def stop(self) -> None:
        """Says BYE where there is somebody to say it to, and ends everything that runs."""
        connection, was_ready = self._connection, self.ready
        if self.state is not ClientState.CLOSED:
            self._advance(ClientEvent.STOP)
            self._owner.on_closed(None)
        try:
            if connection is not None and was_ready:
                connection.send(encode_envelope("BYE", self.ids.next("b_"), wall_ms(), {"reason": "closing"}))
                connection.close()
                await asyncio.wait([connection.gone], timeout=_GOODBYE_S)
        finally:
            if connection is not None:
                connection.abort("The client closed the connection.")
            if self._task is not None:
                self._task.cancel()
        if self._task is not None:
            await asyncio.wait([self._task])

    # --- the life -------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            self._advance(ClientEvent.START)
            while await self._go_around():
                self._advance(ClientEvent.WAITED)
        except Exception as error:
            # An error of ours: whoever waits must not wait for ever, and the loop's handler gets to see it.
            if self.state is not ClientState.CLOSED:
                self._give_up(RelayError(ErrorCode.INTERNAL_ERROR, f"The client failed: {type(error).__name__}."))
            raise

    async def _go_around(self) -> bool:
        """One connection and the wait after it; False when it was the last."""
        reason = await self._live_once()
        if self.state is ClientState.CLOSED:
            return False
        if self._is_final(reason):
            self._give_up(reason)
            return False
        self._waits += 1
        self._advance(ClientEvent.LOST)
        if self._attempts is not None and self._waits > self._attempts:
            self._give_up(self._exhausted(reason))
            return False
        await self._backoff.wait(self._waits, reason.retry_after_ms)
        return True

    async def _live_once(self) -> RelayError:
        """One connection from its beginning to its end, and why it ended."""
        self._forget_last()
        try:
            async with asyncio.timeout(self._connect_timeout):
                self._connection = await open_connection(self.socket, self.ids, self._on_frame, self._on_lost)
                self._advance(ClientEvent.CONNECTED)
                self._greet()
                assert self._verdict is not None
                refusal = await self._verdict
            if refusal is not None:
                return refusal
            reason = await self._connection.gone
            return self._farewell or ConnectionLost(reason)
        except TimeoutError:
            return ConnectionLost(f"The daemon at {self.socket} did not answer within {self._connect_timeout:g} seconds.")
        except StrangerAtSocket as stranger:
            return stranger
        except OSError as error:
            return explain_os_error(error, self.socket)
        finally:
            if self._connection is not None and self.state is not ClientState.CLOSED:
                self._connection.abort("The client closed the connection.")

    def _forget_last(self) -> None:
        self._connection = None
        self._farewell = None
        self._verdict = asyncio.get_running_loop().create_future()

    def _is_final(self, reason: RelayError) -> bool:
        if not self.connections and not self._wait_at_start:
            return True
        if isinstance(reason, ConnectionLost):
            return reason.fatal
        if reason.code is ErrorCode.PERMISSION_DENIED and self.connections:
            # It was ours a moment ago. The daemon may not have noticed yet that the old connection is gone, or it has
            # forgotten our token; neither says that the name belongs to somebody else.
            match reason.details.get("reason"):
                case "name_in_use":
                    return False
                case "bad_token":
                    self.greeting.resume_token = None
                    return False
        return not reason.code.retryable

    def _exhausted(self, reason: RelayError) -> RelayError:
        if not self._attempts:
            return reason
        error = ConnectionLost(f"Gave up after {self._attempts} attempts to reconnect. {reason.message}", code=reason.code)
        error.details = dict(reason.details)
        error.__cause__ = reason
        return error

    def _give_up(self, error: RelayError) -> None:
        self.error = error
        if self.state is ClientState.CONNECTING:
            self._advance(ClientEvent.LOST)
        self._advance(ClientEvent.GAVE_UP)
        self._owner.on_closed(error)
        self._settled.set()

    def _advance(self, event: ClientEvent) -> None:
        self.state = advance(CLIENT, self.state, event)
        self._owner.on_state(self.state)

    # --- what the daemon says -------------------------------------------------------------------------------------

    def _greet(self) -> None:
        assert self._connection is not None
        self._connection.send(self.greeting.encode(self.ids.next("h_")))

    def _on_frame(self, frame: DaemonFrame) -> None:
        if self.state is ClientState.READY:
            if isinstance(frame, Bye):
                self._on_bye(frame.payload.reason or "")
                return
            if isinstance(frame, Error) and frame.payload.fatal:
                self._farewell = ConnectionLost(f"The daemon ended the connection. {frame.payload.message}")
            self._owner.on_frame(frame)
        elif self.state is ClientState.HANDSHAKING:
            self._on_answer(frame)

    def _on_answer(self, frame: DaemonFrame) -> None:
        match frame:
            case Welcome(payload=welcome):
                self._on_welcome(welcome)
            case Nack(payload=nack) if nack.code in _TOO_OLD and self.greeting.resume_token:
                self.greeting.resume_token = None
                self._greet()
            case Nack(payload=said) | Error(payload=said):
                self._judge(read_error(said))
            case Bye(payload=bye):
                self._judge(ConnectionLost(f"The daemon refused the connection: {bye.reason or 'no reason given'}."))
            case _:
                pass  # nothing else can be meant for a connection that is not open yet

    def _on_welcome(self, welcome: WelcomePayload) -> None:
        assert self._connection is not None
        self._connection.welcome(welcome.server.max_frame_bytes, welcome.server.heartbeat_ms)
        self.welcome = welcome
        self.greeting.resume_token = welcome.resume_token or None
        self.connections += 1
        self._waits = 0
        self._advance(ClientEvent.WELCOMED)
        self._judge(None)
        self._owner.on_ready()
        self._settled.set()

    def _on_bye(self, reason: str) -> None:
        assert self._connection is not None
        final = _FINAL_BYES.get(reason)
        if final is not None:
            self._farewell = ConnectionLost(final, code=ErrorCode.PERMISSION_DENIED, reason=reason)
            self._farewell.fatal = True
        else:
            self._farewell = ConnectionLost(f"The daemon ended the connection: {reason or 'no reason given'}.", reason=reason)
        self._connection.close()

    def _on_lost(self, _reason: str) -> None:
        self._judge(
            ConnectionLost(
                "The daemon closed the connection without an answer. Another user's daemon does that unless it allows this user."
            )
        )

    def _judge(self, refusal: RelayError | None) -> None:
        if self._verdict is not None and not self._verdict.done():
            self._verdict.set_result(refusal)


def explain_os_error(error: OSError, socket: str) -> RelayError:
    if isinstance(error, FileNotFoundError | ConnectionRefusedError | NotADirectoryError):
        return DaemonNotRunning(socket)
    if isinstance(error, PermissionError):
        return RelayError(ErrorCode.PERMISSION_DENIED, f"You have no permission to open {socket}.", socket=socket)
    return ConnectionLost(f"Connecting to {socket} failed: {error}.")
