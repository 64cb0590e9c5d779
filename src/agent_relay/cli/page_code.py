"""The dashboard's address with a code that lets one browser in, once, within a minute; asked of the daemon as its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_relay.cli.failures import Failure
from agent_relay.cli.http_place import HttpPlace
from agent_relay.cli.safe_text import clean_line

if TYPE_CHECKING:
    import ssl

_CODES, _KEYS = "/api/v1/page-codes", "/api/v1/page-keys"


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
