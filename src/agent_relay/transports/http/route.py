"""A route: where it is, what it takes, what it answers. The server and the OpenAPI description are made of the same ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agent_relay.ports.callers import OWNER, Caller

if TYPE_CHECKING:
    from agent_relay.transports.http.api import Api

JSON, HTML, SSE = "application/json", "text/html", "text/event-stream"
LINES = "application/octet-stream"  # a file of JSON lines: generators of clients know no type for that
METRICS = "text/plain; version=0.0.4"


class Call(Struct, frozen=True):
    """One request, read and checked. `query` and `body` are of the types their route names."""

    names: Mapping[str, str]  # of the path
    query: Any = None
    body: Any = None
    headers: Mapping[str, str] = {}
    address: str = ""  # of whoever asks
    caller: Caller = OWNER  # as the system says; only looked up where the route needs a right
    key: str | None = None  # what a repeat of this request is known by


class Text(Struct, frozen=True):
    """An answer that is no JSON. `status`: another one than the route's."""

    content: bytes
    media: str
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Flow(Struct, frozen=True):
    """An answer that goes on. `close` is called when it is over, or its reader gone; when `lost` returns, its reader has been
    too slow."""

    parts: AsyncIterator[bytes]
    lost: Callable[[], Coroutine[Any, Any, None]]
    close: Callable[[], None]
    media: str = SSE


Handler = Callable[["Api", Call], Coroutine[Any, Any, Any]]


class Route(Struct, frozen=True):
    method: str
    path: str  # `/api/v1/agents/{name}`; `{path}`, at the end, is all that follows
    handle: Handler
    summary: str
    tag: str
    answer: Any = None  # the type of a good answer
    status: int = 200
    body: type[Struct] | None = None
    needs_body: bool = True
    query: type[Struct] | None = None
    errors: tuple[int, ...] = ()
    media: str = JSON
    is_open: bool = False  # asks for no token
    right: str = ""  # what an agent must have been granted; without, whatever changes something is for the owner alone
    description: str = ""  # what the summary does not say; an event stream has one of its own
    takes_key: bool = False  # done twice it would do harm: a repeat under the same key gets the first answer
    is_flat: bool = False  # ARC's: errors are `{"error", "message"}`, and the handler reads the body itself
    is_described: bool = True  # in the OpenAPI description; files of pages are nothing that clients are made for

    @property
    def needed_right(self) -> str:
        return self.right or ("" if self.method == "GET" or self.is_open else "admin")

    @property
    def names(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
