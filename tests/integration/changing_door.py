"""A CLI with opencode's prompt, whose server answers in another way at each start: `changing_door.py FOLDER ARGUMENTS...`.

`FOLDER/shape` says how. What it is given is written to `FOLDER/given`, a line for each text; every start to `FOLDER/starts`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import tty
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER, ARGUMENTS = Path(sys.argv[1]), sys.argv[2:]
SHAPE = (FOLDER / "shape").read_text()
RIGHT = {"/global/health": {"healthy": True, "version": "1.18.33"}, "/session/status": {}, "/permission": [], "/question": []}
CHANGED: dict[str, dict[str, object]] = {
    "renamed field": {"/global/health": {"isHealthy": True, "version": "1.18.33"}},
    "other shape": {"/permission": {"items": []}},
}
FOOTER = "  \u2579" + "\u2580" * 40


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if SHAPE == "hanging":
            threading.Event().wait()
        if SHAPE == "401":
            return self._say(401, {})
        if SHAPE == "missing method" and self.path == "/question":
            return self._say(404, {})
        return self._say(200, {**RIGHT, **CHANGED.get(SHAPE, {})}.get(self.path, {}))

    def _say(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


def draw(draft: str) -> None:
    rows = ["", "  \u2503", f"  \u2503  {draft}", "  \u2503", "  \u2503  Build \u00b7 Model", FOOTER]
    sys.stdout.write("\x1b[H\x1b[2J" + "\r\n".join(rows))
    sys.stdout.flush()


def main() -> None:
    if ARGUMENTS == ["--version"]:
        print("1.18.33")
        return
    with (FOLDER / "starts").open("a") as file:
        file.write(" ".join(ARGUMENTS) + "\n")
    if "--port" in ARGUMENTS and SHAPE != "nobody":
        server = ThreadingHTTPServer(("127.0.0.1", int(ARGUMENTS[ARGUMENTS.index("--port") + 1])), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
    tty.setraw(0)
    sys.stdout.write("\x1b[?1049h\x1b[?2004h")
    draft = ""
    draw(draft)
    while data := os.read(0, 65536).decode():
        for mark in ("\x1b[200~", "\x1b[201~"):
            data = data.replace(mark, "")
        text, enter, _ = data.partition("\r")
        draft += text
        if enter:
            with (FOLDER / "given").open("a") as file:
                file.write(draft + "\n")
            draft = ""
        draw(draft)


main()
