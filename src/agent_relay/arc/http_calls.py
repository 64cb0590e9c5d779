"""One HTTP request with a JSON answer: what registering needs, with the standard library alone.

It follows no redirect and uses no proxy, so a token goes to the host it is meant for and nowhere else.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agent_relay.arc.addresses import choose_tls
from agent_relay.arc.errors import ArcError, ArcRefused

TIMEOUT_S = 15.0
_LARGEST_ANSWER = 8 * 1024 * 1024  # an answer of ours is a few kilobytes; a list of agents may be long
_SHOWN_TEXT = 300


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any  # None where it is not JSON
    retry_after_s: float | None


async def call(
    base_url: str, method: str, path: str, *, body: Any = None, token: str | None = None, tls: ssl.SSLContext | None = None
) -> Answer:
    return await asyncio.to_thread(call_now, base_url, method, path, body=body, token=token, tls=tls)


def call_now(
    base_url: str, method: str, path: str, *, body: Any = None, token: str | None = None, tls: ssl.SSLContext | None = None
) -> Answer:
    """Raises ArcError where no answer came."""
    parts = urlsplit(base_url)
    headers = {"Accept": "application/json"}
    content = None
    if body is not None:
        content = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection = _open(parts.netloc, choose_tls(base_url, tls))
    try:
        connection.request(method, parts.path + path, content, headers)
        answer = connection.getresponse()
        return Answer(answer.status, _read_json(answer.read(_LARGEST_ANSWER)), _read_seconds(answer.getheader("Retry-After")))
    except (OSError, http.client.HTTPException) as error:
        raise ArcError(f"No response from {base_url}: {str(error) or type(error).__name__}.", code="unreachable") from None
    finally:
        connection.close()


async def expect(
    base_url: str, method: str, path: str, *, body: Any = None, token: str | None = None, tls: ssl.SSLContext | None = None
) -> dict[str, Any]:
    """The object that was answered; raises ArcRefused for any status but 2xx."""
    answer = await call(base_url, method, path, body=body, token=token, tls=tls)
    if 200 <= answer.status < 300:
        return answer.body if isinstance(answer.body, dict) else {}
    raise read_refusal(answer)


def read_refusal(answer: Answer) -> ArcRefused:
    """The seed's flat form `{"error": code, "message"}`, and the API's `{"error": {"code", "message"}}`."""
    said = answer.body if isinstance(answer.body, dict) else {}
    error = said.get("error")
    inner = error if isinstance(error, dict) else {"code": error, "message": said.get("message")}
    message = str(inner.get("message") or f"The relay responded with {answer.status}.")[:_SHOWN_TEXT]
    return ArcRefused(message, code=str(inner.get("code") or ""), status=answer.status, retry_after_s=answer.retry_after_s)


def _open(netloc: str, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    try:
        if tls is not None:
            return http.client.HTTPSConnection(netloc, timeout=TIMEOUT_S, context=tls)
        return http.client.HTTPConnection(netloc, timeout=TIMEOUT_S)
    except http.client.InvalidURL as error:
        raise ArcError(f"{netloc!r} is not a valid host: {error}.", code="invalid_url") from None


def _read_json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _read_seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None  # a date; the caller's own patience serves
