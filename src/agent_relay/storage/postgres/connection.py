"""Connecting to the server, and its errors as sentences. A password is in none of them."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from agent_relay.ports.store import StoreUnusable
from agent_relay.storage.postgres.url import DatabaseUrl

try:
    import asyncpg
except ImportError:
    raise StoreUnusable(
        "PostgreSQL needs the package asyncpg, which is not installed. Install it with: pip install 'agent-relay[postgres]'"
    ) from None

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

CONNECT_S = 8.0
_OUR_NAME = "agent-relay"
_KEEPALIVE_S = 10  # a peer that is gone without a word is noticed after some 30 s, and its place is free then

# Of these nobody knows yet whether what was under way has happened.
BROKEN: tuple[type[BaseException], ...] = (OSError, TimeoutError, asyncpg.PostgresConnectionError, asyncpg.InternalClientError)
FAILURES: tuple[type[BaseException], ...] = (*BROKEN, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError)


async def connect(url: DatabaseUrl, purpose: str, **settings: str) -> Connection:
    """Raises one of FAILURES."""
    quoted = '"' + url.schema.replace('"', '""') + '"'
    return await asyncpg.connect(
        url.dsn,
        timeout=CONNECT_S,
        server_settings={
            "application_name": f"{_OUR_NAME} {purpose}",
            "search_path": quoted,
            "jit": "off",  # compiling takes longer than any statement here
            "tcp_keepalives_idle": str(_KEEPALIVE_S),
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "4",
            "client_min_messages": "warning",
            **settings,
        },
    )


def is_in_doubt(connection: Connection, error: BaseException) -> bool:
    """Whether the statement that failed so may have been committed all the same. The server's ERROR says that it was not; its
    FATAL says only that the connection is over, and may come after the commit."""
    if isinstance(error, BROKEN) or connection.is_closed():
        return True
    return isinstance(error, asyncpg.PostgresError) and getattr(error, "severity_en", "ERROR") != "ERROR"


def describe(url: DatabaseUrl, error: BaseException) -> str:
    """A sentence without its full stop: what happened, and what to do."""
    return hide_secrets(url, f"{url.location}: {_explain(error)}")


def hide_secrets(url: DatabaseUrl, text: str) -> str:
    for secret in url.secrets:
        text = text.replace(secret, "***")
    return text


def _explain(error: BaseException) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    match error:
        case asyncpg.InvalidPasswordError() | asyncpg.InvalidAuthorizationSpecificationError():
            return f"the server refused the login ({said}). Check the user, and the password in ~/.pgpass, PGPASSWORD or the URL"
        case asyncpg.InvalidCatalogNameError():
            return f"{said}. Create it with: createdb NAME"
        case asyncpg.InsufficientPrivilegeError():
            return f"{said}. The user needs the right to create a schema in this database; see docs/postgres.md"
        case asyncpg.DiskFullError():
            return f"the server's disk is full ({said})"
        case asyncpg.TooManyConnectionsError():
            return f"the server has no connection left ({said}); the relay needs two"
        case ssl.SSLError():
            return f"no encrypted connection could be made ({said}). Check sslmode and sslrootcert"
        case TimeoutError():
            return "the server does not answer"
        case asyncpg.CannotConnectNowError():
            return f"the server is not ready ({said})"
        case OSError():
            return f"the server cannot be reached ({said}): check that it runs and that the address is right"
        case _:
            return said


def state_of(error: BaseException) -> str:
    """The SQLSTATE, or nothing."""
    return str(getattr(error, "sqlstate", None) or "")


Record = Any  # of asyncpg: a mapping by column
