"""The means of a check: agents that are registered once and used by many checks, and raw connections as them.

That something does *not* arrive is shown without waiting: the same sender writes to the same recipient once more, and whatever
should not have arrived would have come before that. Every text carries a word of its own check, so what an earlier one left
behind disturbs nobody.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import ssl
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from agent_relay.arc.addresses import ArcAddress, choose_tls, parse_address
from agent_relay.arc.conformance.case import Broken, Facts, Unchecked, read_facts
from agent_relay.arc.errors import ArcError
from agent_relay.arc.http_calls import Answer, call
from agent_relay.arc.registration import Registration, registration_body

Frame = dict[str, Any]
POOL = 6  # agents; a relay may allow each only so many messages a minute, and a registration only so often
_LARGEST_FRAME = 8 * 1024 * 1024


class Peer:
    """One connection, read when somebody listens."""

    def __init__(self, agent: Registration, connection: ClientConnection, timeout_s: float) -> None:
        self.id = agent.agent_id
        self.connection = connection
        self.heard: list[Frame] = []  # everything, in order
        self._timeout_s = timeout_s

    async def say(self, to: list[str], payload: Any, **fields: Any) -> None:
        await self.say_raw(json.dumps({"to": to, "payload": payload, **fields}))

    async def command(self, type_: str, payload: Any = None, **fields: Any) -> None:
        frame = {"to": ["relay"], "type": type_, **fields}
        await self.say_raw(json.dumps(frame if payload is None else frame | {"payload": payload}))

    async def say_raw(self, frame: str | bytes) -> None:
        try:
            await self.connection.send(frame)
        except ConnectionClosed as closed:
            raise Broken(f"the relay had closed the connection of {self.id} ({closed})") from None

    async def hear(self, wanted: Callable[[Frame], bool], what: str) -> Frame:
        """The next frame that is wanted; others are kept in `heard`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    frame = await self._next()
                    if wanted(frame):
                        return frame
        except TimeoutError:
            raise Broken(f"{what} did not arrive within {self._timeout_s:g} s") from None
        except ConnectionClosed as closed:
            raise Broken(f"{what} did not arrive: the relay closed the connection ({closed})") from None

    async def must_live(self, work: Coroutine[Any, Any, Frame]) -> None:
        """Until the work is done, and a moment longer: a relay may deal with what it has read before it closes."""
        working = asyncio.ensure_future(work)
        closing = asyncio.ensure_future(self.connection.wait_closed())
        try:
            await asyncio.wait({working, closing}, return_when=asyncio.FIRST_COMPLETED)
            if not closing.done():
                working.result()
                pong = asyncio.ensure_future(await self.connection.ping())
                await asyncio.wait({pong, closing}, timeout=self._timeout_s, return_when=asyncio.FIRST_COMPLETED)
                pong.cancel()
        except ConnectionClosed:
            await closing
        finally:
            is_closed = closing.done()
            for task in (working, closing):
                task.cancel()
            await asyncio.wait({working, closing})
        if is_closed:
            raise Broken(f"the relay closed the connection of {self.id} ({self.connection.close_code})")

    async def hear_payload(self, payload: Any) -> Frame:
        return await self.hear(lambda frame: frame.get("payload") == payload, f"the message {payload!r} to {self.id}")

    async def hear_type(self, type_: str) -> Frame:
        return await self.hear(lambda frame: frame.get("type") == type_, f"a frame of type {type_!r}")

    async def hear_close(self) -> int:
        """The close code; frames before it are kept."""
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    await self._next()
        except ConnectionClosed:
            return self.connection.close_code or 0
        except TimeoutError:
            raise Broken(f"the relay did not close the connection within {self._timeout_s:g} s") from None

    async def _next(self) -> Frame:
        said = await self.connection.recv()
        if isinstance(said, bytes):
            raise Broken("the relay sent a binary frame; frames are text")
        try:
            frame = json.loads(said)
        except ValueError:
            raise Broken("the relay sent a frame that is not JSON") from None
        if not isinstance(frame, dict):
            raise Broken("the relay sent a frame that is not an object")
        self.heard.append(frame)
        return frame


class Relay:
    """The relay under test, over all checks."""

    def __init__(
        self, url: str, timeout_s: float = 5.0, tls: ssl.SSLContext | None = None, *, invite: str | None = None,
        api_token: str | None = None,
    ) -> None:  # fmt: skip
        self.address: ArcAddress = parse_address(url)
        self.facts = Facts()
        self.timeout_s = timeout_s
        self.tls = tls
        self._invite = invite  # good for at least twenty registrations; or the token of the relay's API
        self._api_token = api_token
        self._pool: list[Registration] = []
        self._next = 0

    async def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Answer:
        try:
            return await call(self.address.http_url, method, path, body=body, token=token, tls=self.tls)
        except ArcError as error:
            raise Unchecked(error.message) from None

    async def try_to_register(self, agent_id: Any) -> Answer:
        return await self.call("POST", "/register", registration_body(agent_id, self._invite), self._api_token)

    async def register(self, agent_id: str | None = None) -> Registration:
        answer = await self.try_to_register(agent_id)
        if answer.status == 401:
            raise Unchecked("registering needs the relay's API token or an invitation: pass --invite CODE")
        if answer.status == 429:
            raise Unchecked("the relay allows no more registrations now; raise its limit for the check, or try again later")
        body = answer.body if isinstance(answer.body, dict) else {}
        if answer.status != 200 or not isinstance(body.get("agent_id"), str) or not isinstance(body.get("token"), str):
            raise Broken(f"registering returned {answer.status} without agent_id and token")
        return Registration(body["agent_id"], body["token"])

    async def take_agent(self) -> Registration:
        """The next of the pool; each check begins with another one."""
        if len(self._pool) < POOL:
            self._pool.append(await self.register(new_agent_id()))
            return self._pool[-1]
        self._next += 1
        return self._pool[self._next % POOL]

    async def learn_facts(self) -> None:
        """Connects once and sees whether a welcome comes before anything else."""
        stage = Stage(self)
        try:
            peer = await stage.join()
            pong = await peer.connection.ping()
            reading = asyncio.ensure_future(peer.connection.recv())
            waiting = asyncio.ensure_future(pong)
            await asyncio.wait({reading, waiting}, timeout=self.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({reading}, timeout=0.2)  # the pong may overtake what the relay is about to say
            if reading.done() and not reading.exception():
                said = json.loads(reading.result())
                self.facts = read_facts(said if isinstance(said, dict) and said.get("type") == "welcome" else None)
            for task in (reading, waiting):
                task.cancel()
            await asyncio.wait({reading, waiting})
        except (Broken, ValueError):
            self.facts = Facts()
        finally:
            await stage.close()


class Stage:
    """For one check."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.facts = relay.facts
        self._word = secrets.token_hex(5)
        self._peers: list[Peer] = []

    def text(self, *words: object) -> str:
        """A text that nobody else sends."""
        return "-".join([self._word, *map(str, words)])

    async def join(self, agent: Registration | None = None, *, query: bool = False) -> Peer:
        agent = agent or await self.relay.take_agent()
        peer = Peer(agent, await self.open(agent.token, query=query), self.relay.timeout_s)
        self._peers.append(peer)
        if self.facts.welcome is not None:
            await peer.hear_type("welcome")  # only then the relay counts it among those who are there
        return peer

    async def join_two(self) -> tuple[Peer, Peer]:
        return await self.join(), await self.join()

    async def join_three(self) -> tuple[Peer, Peer, Peer]:
        return await self.join(), await self.join(), await self.join()

    async def open(
        self, token: str | None, *, query: bool = False, header: str | None = None
    ) -> ClientConnection:  # fmt: skip
        """Raises Broken where the relay refuses."""
        try:
            return await self._connect(token, query=query, header=header)
        except InvalidStatus as refused:
            status = refused.response.status_code
            if status == 429:
                raise Unchecked("the relay allows no more connections now; try again later") from None
            raise Broken(f"the relay refused a valid token with {status}") from None
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Broken(f"no WebSocket could be opened: {str(error) or type(error).__name__}") from None

    async def refused_status(self, token: str | None, *, query: bool = False, header: str | None = None) -> int:
        """The HTTP status the connection is refused with; raises Broken if it is not."""
        try:
            connection = await self._connect(token, query=query, header=header)
        except InvalidStatus as refused:
            return refused.response.status_code
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Broken(f"the connection broke without an HTTP response: {str(error) or type(error).__name__}") from None
        await connection.close()
        raise Broken("the relay opened the connection")

    async def _connect(self, token: str | None, *, query: bool, header: str | None) -> ClientConnection:
        url = self.relay.address.socket_url + (f"?token={quote(token or '')}" if query else "")
        bearer = header if query else token
        return await connect(
            url, additional_headers={"Authorization": f"Bearer {bearer}"} if bearer is not None else None, compression=None,
            proxy=None, open_timeout=self.relay.timeout_s, close_timeout=2, max_size=_LARGEST_FRAME, max_queue=None,
            ssl=choose_tls(url, self.relay.tls),
        )  # fmt: skip

    async def frames_until_marker(self, sender: Peer, recipient: Peer) -> list[Frame]:
        """The messages of this check that have reached the recipient once all that the sender said before is dealt with."""
        marker = self.text("marker", secrets.token_hex(3))
        await sender.say([recipient.id], marker)
        await sender.must_live(recipient.hear_payload(marker))
        return [frame for frame in recipient.heard if self._word in json.dumps(frame) and frame.get("payload") != marker]

    async def close(self) -> None:
        for peer in self._peers:
            await peer.connection.close()


def new_agent_id() -> str:
    return f"check-{secrets.token_hex(8)}"
