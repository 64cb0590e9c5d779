"""`inbox.md`: every message to an agent, in full, whatever becomes of the typing; and which of them were taken.

A body is quoted line by line, so that nothing in it passes for a heading. The list of deliveries that were taken keeps a
wrapper that was killed between typing a message and acknowledging it from typing it again.
"""

from __future__ import annotations

import contextlib
import os
from collections import OrderedDict
from datetime import UTC, datetime

from agent_relay.private_files import read_private, replace_private
from agent_relay.protocol.short_ids import short_id
from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.delivery.message_text import ShownMessage, id_to_read, is_plain_id
from agent_relay.terminal.files.private_files import append_private

INBOX_FILE = "inbox.md"
TAKEN_FILE = "taken"
MAX_INBOX_BYTES = 4_194_304  # then the file becomes inbox.old.md, and a new one is begun
REMEMBERED = 2_000


class InboxFile:
    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.path = os.path.join(folder, INBOX_FILE)
        self._taken_path = os.path.join(folder, TAKEN_FILE)
        known = read_private(self._taken_path) or b""
        self._taken = OrderedDict((line, None) for line in known.decode("utf-8", "replace").split("\n") if line)
        self._is_torn = known != b"" and not known.endswith(b"\n")  # half a line, which nothing may follow
        self._written: OrderedDict[str, None] = OrderedDict()

    def add(self, message: ShownMessage) -> None:
        """A message that came; the same again, as after a reconnection, is not written again."""
        if message.id in self._written:
            return
        self._written[message.id] = None
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)
        about = [part for part in (message.channel, message.thread and f"thread {clean(message.thread)!r}") if part]
        if message.correlation is not None and is_plain_id(message.correlation):
            about.append(f"waits for an answer, CORRELATION: {message.correlation}")
        heading = f"## {_now()}  from {message.sender}  [{short_id(message.id)}]{''.join(f'  {part}' for part in about)}"
        quoted = "\n".join(f"> {line}" for line in clean(message.body).split("\n"))
        self._append(self.path, f"{heading}\n\n`agent-relay read {id_to_read(message.id)}`\n\n{quoted}\n\n")

    def note(self, message: ShownMessage, outcome: str) -> None:
        self._append(self.path, f"- {_now()}  [{short_id(message.id)}]  {outcome}\n\n")

    def was_taken(self, delivery_id: str) -> bool:
        return delivery_id in self._taken

    def mark_taken(self, delivery_id: str) -> None:
        self._taken[delivery_id] = None
        end = "\n" if self._is_torn else ""
        self._is_torn = not self._append(self._taken_path, f"{end}{delivery_id}\n")
        if len(self._taken) > 2 * REMEMBERED:
            while len(self._taken) > REMEMBERED:
                self._taken.popitem(last=False)
            with contextlib.suppress(OSError):
                replace_private(self._taken_path, "".join(f"{known}\n" for known in self._taken).encode())

    def _append(self, path: str, text: str) -> bool:
        try:
            size = append_private(path, text.encode("utf-8", "replace"))
            if path == self.path and size > MAX_INBOX_BYTES:
                os.replace(path, f"{path.removesuffix('.md')}.old.md")
        except OSError:
            return False  # a full disk must not keep a message from the agent
        return True


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
