"""A program that looks like Gemini CLI, runs its hooks, and asks one permission. It writes down what was chosen.

    python gemini_program.py RECORD SCREENS

The dialog is drawn as it was recorded (SCREENS is the file of such a recording), with the selection where it was moved to.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tty
from pathlib import Path

OPTION = re.compile(r"^│ [● ] (\d)\. (.+?) +│$")
COMPOSER = ["─" * 110, " >   Type your message or @path/to/file", "─" * 110]
START_S = 30.0
KEYS = {b"\x1b[B": 1, b"\x1b[A": -1, b"\x1bOB": 1, b"\x1bOA": -1}


class Gemini:
    def __init__(self, record: str, screens: str) -> None:
        self._record = Path(record)
        text = Path(screens).read_text("utf-8").split("##### prompt open\n")[1].split("\n#####")[0]
        self._dialog = [line for line in text.splitlines() if line[:1] in "╭│╰"]
        self._options = [found[2] for line in self._dialog if (found := OPTION.match(line))]

    def run(self) -> None:
        tty.setraw(0)
        self._start()
        self._write("started")
        self._hook("BeforeAgent", prompt="go")
        self._ask()
        self._draw("◇  Ready", COMPOSER)
        while os.read(0, 65_536):
            pass

    def _start(self) -> None:
        """The real one takes a second or two, and somebody listens to its hooks by then."""
        script = Path(os.environ["AGENT_RELAY_GEMINI_HOOK"]).read_text("utf-8") if "AGENT_RELAY_GEMINI_HOOK" in os.environ else ""
        socket = re.search(r"-S ([^ ]+)", script)
        deadline = time.monotonic() + START_S
        while socket and not os.path.exists(socket[1]) and time.monotonic() < deadline:
            time.sleep(0.02)
        self._hook("SessionStart", source="startup")

    def _ask(self) -> None:
        details = {"type": "exec", "title": "Confirm Shell Command", "command": "rm -rf build", "rootCommand": "rm"}
        self._hook("Notification", notification_type="ToolPermission", message="Tool asks", details=details)
        chosen = 0
        while True:
            self._draw("✋  Action Required", self._rows(chosen))
            key = os.read(0, 65_536)
            if key in (b"\r", b"\x1b"):
                break
            chosen = (chosen + KEYS.get(key, 0)) % len(self._options)
        self._write("chosen", option=self._options[chosen] if key == b"\r" else "")
        self._hook("AfterAgent", prompt="go", prompt_response="", stop_hook_active=False)

    def _rows(self, chosen: int) -> list[str]:
        rows = []
        for line in self._dialog:
            found = OPTION.match(line)
            pointed = "●" if found and int(found[1]) == chosen + 1 else " "
            rows.append(f"{line[:2]}{pointed}{line[3:]}" if found else line)
        return rows

    def _draw(self, title: str, rows: list[str]) -> None:
        os.write(1, ("\x1b[2J\x1b[H" + "\r\n".join(rows) + f"\x1b]0;{title}\x07").encode())

    def _hook(self, event: str, **given: object) -> None:
        common = {"session_id": "0", "transcript_path": "", "cwd": os.getcwd(), "hook_event_name": event}
        script = os.environ.get("AGENT_RELAY_GEMINI_HOOK")
        if script:
            subprocess.run(["sh", script, event], input=json.dumps({**common, **given}).encode(), capture_output=True, check=True)

    def _write(self, event: str, **fields: str) -> None:
        with self._record.open("a") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")


if __name__ == "__main__":
    Gemini(*sys.argv[1:3]).run()
