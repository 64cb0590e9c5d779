"""The URL of a database, and what may be shown of it. Read before anything connects, so nothing here needs asyncpg."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

SCHEMES = frozenset({"postgresql", "postgres"})
SCHEMA_KEY = "schema"
_SECRET_KEYS = frozenset({"password", "sslpassword"})
_PATH_KEYS = frozenset({"search_path", "options"})
_SCHEMA = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_WANTED = "a URL such as postgresql://user@host/database"


class DatabaseUrl(NamedTuple):
    dsn: str  # for the driver: with the password, if it has one, and without the schema
    schema: str  # where this project's tables are
    secrets: tuple[str, ...]  # what must not be shown
    location: str  # for people


def check_url(text: str) -> str:
    """The URL as it is; raises ValueError, which says what is wanted and shows nothing of it."""
    read_url(text, "checked")
    return text


def has_password(text: str) -> bool:
    return bool(_find_secrets(text))


def read_url(text: str, project_id: str) -> DatabaseUrl:
    """The schema is the one the URL names, or `agent_relay_` and the project's id."""
    try:
        parts = urlsplit(text.strip())
        _ = parts.password  # looks at the whole of it
    except ValueError:
        raise ValueError(_WANTED) from None
    if parts.scheme not in SCHEMES or not (parts.netloc or parts.path or parts.query) or parts.fragment:
        raise ValueError(_WANTED)
    query = parse_qsl(parts.query, keep_blank_values=True)
    if any(key in _PATH_KEYS for key, _ in query):
        raise ValueError(f"{_WANTED}; to choose the schema, add ?{SCHEMA_KEY}=NAME instead of search_path or options")
    named = [value for key, value in query if key == SCHEMA_KEY]
    schema = named[-1] if named else f"agent_relay_{project_id}"
    if not _SCHEMA.fullmatch(schema) or schema.lower().startswith("pg_") or schema == "information_schema":
        raise ValueError(f"{_WANTED}; a schema's name has letters, digits, _ and -, and does not begin with pg_")
    kept = [(key, value) for key, value in query if key != SCHEMA_KEY]
    dsn = urlunsplit(parts._replace(query=urlencode(kept)))
    shown = [(key, value) for key, value in kept if key not in _SECRET_KEYS] + [(SCHEMA_KEY, schema)]
    location = urlunsplit(parts._replace(netloc=_without_password(parts.netloc), query=urlencode(shown, safe="/")))
    return DatabaseUrl(dsn, schema, _find_secrets(text), location)


def _without_password(netloc: str) -> str:
    user, at, host = netloc.rpartition("@")
    return f"{user.partition(':')[0]}{at}{host}"


def _find_secrets(text: str) -> tuple[str, ...]:
    """As they are spelled in the URL, and as they are meant."""
    try:
        parts = urlsplit(text.strip())
        found = [parts.password] if parts.password else []
    except ValueError:
        return (text,)
    found += [value for key, value in parse_qsl(parts.query) if key in _SECRET_KEYS]
    return tuple(dict.fromkeys(word for secret in found for word in (secret, unquote(secret)) if word))
