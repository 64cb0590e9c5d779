"""The dashboard's files: only those of this package's own folder, each with its type and its mark.

A file is read when it is first asked for, and again when it has changed, so that whoever works on the page sees it at once.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from pathlib import Path

from agent_relay.ports.pages import Asset

FOLDER = Path(__file__).parent / "static"
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/plain; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", re.ASCII)  # nothing hidden, and no way up
_LONGEST_PATH = 200
_PACKED_ALREADY = ("font/", "image/png", "image/vnd")
_MARK_CHARACTERS = 20


class DashboardFiles:
    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = os.path.realpath(folder)
        self._known: dict[str, tuple[tuple[int, int], Asset]] = {}  # by path: when it was written and how long it is

    def find(self, path: str) -> Asset | None:
        media = MEDIA.get(os.path.splitext(path)[1])
        if media is None or len(path) > _LONGEST_PATH or not all(map(_NAME.fullmatch, path.split("/"))):
            return None
        place = os.path.join(self._folder, path)
        if os.path.realpath(place) != place:
            return None  # a link leads elsewhere
        try:
            facts = os.stat(place)
            state = (facts.st_mtime_ns, facts.st_size)
            known = self._known.get(path)
            if known is None or known[0] != state:
                known = self._known[path] = (state, _load(place, media))
        except OSError:
            return None
        return known[1]


def _load(place: str, media: str) -> Asset:
    with open(place, "rb") as file:
        content = file.read()
    mark = f'"{hashlib.sha256(content).hexdigest()[:_MARK_CHARACTERS]}"'
    packed = b"" if media.startswith(_PACKED_ALREADY) else gzip.compress(content, mtime=0)
    return Asset(content, media, mark, packed if len(packed) < len(content) else b"")
