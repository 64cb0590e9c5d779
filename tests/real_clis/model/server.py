"""A model on loopback that says what its script tells it, in the four dialects the CLIs speak, and keeps what it was asked.

with ModelServer([Turn(when="hello", say="->relay:Carol hi")]) as model:
    ...                       # a CLI is pointed at model.url
    model.times_given("hello")   # how often the conversation has it: 1
"""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
import zlib
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, TracebackType
from typing import Any, NamedTuple

from tests.real_clis.model import anthropic, chat, gemini, responses
from tests.real_clis.model.dialects import MODEL, Event, Json
from tests.real_clis.model.script import Asked, Reply, Script, Turn

_TITLE = "A title"
_COUNTS = {"input_tokens": 42, "totalTokens": 42}


class Answered(NamedTuple):
    asked: Asked
    reply: Reply
    is_whole: bool  # the CLI heard it to the end


class ModelServer:
    def __init__(self, turns: Sequence[Turn] = ()) -> None:
        self.script = Script(turns)
        self.answered: list[Answered] = []  # requests of the conversation, in the order their answers ended
        self.asked: list[Asked] = []  # the same, as they came in
        self.unknown: list[str] = []  # what it was asked for and does not know
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.script.release()
        self._http.shutdown()
        self._http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def given(self) -> tuple[str, ...]:
        """All that the model was told in the conversation so far."""
        return self.asked[-1].given if self.asked else ()

    def times_given(self, words: str) -> int:
        return "\n".join(self.given).count(words)


def _handler_of(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        model = server

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def log_message(self, format: str, *words: Any) -> None:  # noqa: A002 - the name is given by the base class
        """Standard error is the test's."""

    def do_HEAD(self) -> None:
        self._send_json({})

    def do_GET(self) -> None:
        if "/models" in self.path:
            card = {"id": MODEL, "object": "model", "type": "model", "display_name": MODEL, "created": 0, "owned_by": "test"}
            self._send_json({"object": "list", "data": [card], "models": []})
        else:
            self._send_json({}, 404)

    def do_POST(self) -> None:
        body, path = self._read_body(), self.path.partition("?")[0]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if path.endswith(("/count_tokens", ":countTokens")):
                self._send_json(_COUNTS)
            elif path.endswith("/messages"):
                self._answer(anthropic, body, streams=bool(body.get("stream")))
            elif path.endswith("/responses"):
                self._answer(responses, body, streams=bool(body.get("stream")))
            elif path.endswith("/chat/completions"):
                self._answer(chat, body, streams=bool(body.get("stream")))
            elif path.endswith(("generateContent", "GenerateContent")):
                self._answer(gemini, body, streams=":stream" in path)
            else:
                self.model.unknown.append(path)
                self._send_json({}, 404)

    # --- answering ---------------------------------------------------------------------------------------------------

    def _answer(self, dialect: ModuleType, body: Json, *, streams: bool) -> None:
        asked: Asked = dialect.read(body)
        if asked.is_aside:
            aside = Reply(gemini.judge(body) if dialect is gemini else _TITLE)
            self._send(dialect, aside, iter([aside.text]), asked, streams=streams)
            return
        script = self.model.script
        self.model.asked.append(asked)
        reply = script.reply(asked)
        is_whole = False
        try:
            self._send(dialect, reply, script.pieces(reply), asked, streams=streams)
            is_whole = True
        finally:
            self.model.answered.append(Answered(asked, reply, is_whole))

    def _send(self, dialect: ModuleType, reply: Reply, pieces: Iterator[str], asked: Asked, *, streams: bool) -> None:
        if streams:
            self._send_events(dialect.stream(reply, pieces, asked))
        else:
            self._send_json(dialect.whole(reply, asked))

    def _send_events(self, events: Iterator[Event]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {text}\n\n".encode())
            self.wfile.flush()

    def _send_json(self, data: Json, status: int = 200) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _read_body(self) -> Json:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = b"".join(self._read_chunks())
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        match self.headers.get("content-encoding"):
            case "gzip":
                raw = gzip.decompress(raw)
            case "deflate":
                raw = zlib.decompress(raw)
        body: Json = json.loads(raw or b"{}")
        return body

    def _read_chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
