"""The dashboard's page and files as a browser gets them."""

from __future__ import annotations

import re

import httpx
import pytest

from agent_relay.dashboard.files import FOLDER
from tests.integration.http_api.conftest import StartServer
from tests.integration.http_api.server import Server, problem

_ELSEWHERE = re.compile(r"""(?:src|href)=["'](?:[a-z]+:|/)""", re.IGNORECASE)


def test_the_page_says_what_it_may_load(http: httpx.Client) -> None:
    answer = http.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


def test_the_word_for_styles_is_new_each_time_and_in_the_page(http: httpx.Client) -> None:
    words = []
    for _ in range(2):
        answer = http.get("/")
        (word,) = re.findall("'nonce-([^']+)'", answer.headers["content-security-policy"])
        assert f'<meta name="style-nonce" content="{word}"' in answer.text
        words.append(word)
    assert words[0] != words[1]


def test_the_page_loads_nothing_from_elsewhere_and_nothing_from_the_root(http: httpx.Client) -> None:
    """So it can live behind a path."""
    assert _ELSEWHERE.findall(http.get("/").text) == []
    for path in FOLDER.rglob("*"):
        if path.suffix in {".js", ".css"} and "vendor" not in path.parts:
            text = path.read_text()
            assert re.findall(r"""(?:from|import)\s*\(?\s*["'](?:[a-z]+:|/)""", text) == [], path
            assert re.findall(r"""url\(["']?(?:https?:|/)""", text) == [], path


def test_a_file_is_asked_for_again_and_answered_in_a_word(http: httpx.Client) -> None:
    first = http.get("/static/index.html")
    assert first.status_code == 200
    assert first.headers["cache-control"] == "no-cache"
    again = http.get("/static/index.html", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert http.get("/static/index.html", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/static/../files.py", "/static/%2e%2e/files.py", "/static/..%2ffiles.py", "/static/no.js", "/static//etc/passwd"],
)
def test_no_other_file_is_given_out(http: httpx.Client, path: str) -> None:
    assert problem(http.get(path)) == (404, "ROUTE_NOT_FOUND")


def test_the_files_ask_for_no_token_and_what_they_show_does(start_server: StartServer) -> None:
    server: Server = start_server()
    assert server.bare.get("/").status_code == 200
    assert server.bare.get("/static/index.html").status_code == 200
    assert server.bare.get("/api/v1/agents").status_code == 401
    assert server.bare.get("/static/../api/v1/agents").status_code in {401, 404}
