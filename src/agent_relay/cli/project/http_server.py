"""The daemon's HTTP server as commands find it: its address, as it wrote down itself, and the dashboard's, with a code that lets
one browser in, once, within a minute."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.protocol import places

if TYPE_CHECKING:
    import ssl

_WAIT_S = 10.0  # the server starts after the socket, and is slower
_POLL_S = 0.02
_CODES, _KEYS = "/api/v1/page-codes", "/api/v1/page-keys"


@dataclass(frozen=True, slots=True)
class HttpPlace:
    url: str | None
    reason: str = ""  # why there is none
    warning: str = ""  # what everybody should know about it
    host: str = ""  # what it is bound to
    port: int = 0
    certificate: str = ""  # the file of its own, with HTTPS


def read_http_place(state_dir: str) -> HttpPlace | None:
    """None: it has not said yet."""
    try:
        with open(os.path.join(state_dir, places.HTTP_FILE), encoding="utf-8") as file:
            said = json.load(file)
        words = {name: str(said.get(name) or "") for name in ("reason", "warning", "host", "certificate")}
        return HttpPlace(said["url"], port=int(said.get("port") or 0), **words)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait_for_http_place(state_dir: str) -> HttpPlace | None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        found = read_http_place(state_dir)
        if found is not None or time.monotonic() >= deadline:
            return found
        time.sleep(_POLL_S)


# --- the dashboard, asked for as the owner -----------------------------------------------------------------------------


def page_address(state_dir: str, http: HttpPlace, base_url: str | None = None) -> str:
    """Behind the `#`, where it is in no log and sent nowhere. `base_url`: as others reach it. Raises Failure."""
    code = _ask(state_dir, http, "POST", _CODES)["code"]
    return f"{base_url or http.url}/#code={code}"


def find_page_address(state_dir: str, http: HttpPlace) -> str:
    """The address alone where there is no code to be had."""
    try:
        return page_address(state_dir, http)
    except Failure:
        return f"{http.url}/"


def forget_pages(state_dir: str, http: HttpPlace) -> int:
    """The number of browsers that have to be let in anew."""
    return int(_ask(state_dir, http, "DELETE", _KEYS)["forgotten"])


def read_output(state_dir: str, agent: str, lines: int) -> list[str]:
    """The last lines of an agent's terminal, on whatever host of the cluster it is. Raises Failure."""
    http = wait_for_http_place(state_dir)
    if http is None or http.url is None:
        reason = "" if http is None else f" ({clean_line(http.reason)})"
        raise Failure(f"{clean_line(agent)} runs on another host, and its output comes over HTTP, which is off here{reason}.")
    return [str(line) for line in _ask(state_dir, http, "GET", f"/api/v1/agents/{agent}/output?lines={lines}")["lines"]]


def _ask(state_dir: str, http: HttpPlace, method: str, path: str) -> dict[str, Any]:
    from agent_relay.arc.errors import ArcError
    from agent_relay.arc.http_calls import call_now, read_refusal
    from agent_relay.sdk.owner import read_api_token

    assert http.url is not None
    try:
        answer = call_now(http.url, method, path, token=read_api_token(state_dir), tls=_trust(http))
    except ArcError as error:
        raise Failure(clean_line(error.message)) from None
    if answer.status not in {200, 201} or not isinstance(answer.body, dict):
        raise Failure(clean_line(read_refusal(answer).message))
    return answer.body


def _trust(http: HttpPlace) -> ssl.SSLContext | None:
    """The very certificate that our daemon says it uses, whoever signed it and whatever name it is for."""
    if not http.certificate:
        return None
    import ssl

    context = ssl.create_default_context(cafile=http.certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
