"""Places for the daemon's own state: a file in its directory, or, in a cluster, a document that every host has."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.daemon.directories import write_private_file
from agent_relay.ports.documents import Documents, Shelf

Keep = Callable[[str, bytes, Callable[[], None] | None], None]


class FileShelf:
    def __init__(self, path: str) -> None:
        self._path = path

    def load(self) -> bytes:
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def save(self, content: bytes) -> None:
        write_private_file(self._path, content.decode())


class DocumentShelf:
    def __init__(self, documents: Documents, name: str) -> None:
        self._documents = documents
        self._name = name

    def load(self) -> bytes:
        return self._documents.find(self._name).get(self._name, b"")

    def save(self, content: bytes) -> None:
        self._documents.put(self._name, content)


def make_shelf(documents: Documents | None, name: str, path: str) -> Shelf:
    """The document of that name, or, for a daemon that is alone, the file."""
    return FileShelf(path) if documents is None else DocumentShelf(documents, name)


class StoredDocuments:
    """Implements `ports.Documents`: what the store had at the start, and since then what was put. `keep` is the core's."""

    def __init__(self, found: dict[str, bytes], keep: Keep) -> None:
        self._found = dict(found)
        self._keep = keep

    def find(self, prefix: str) -> dict[str, bytes]:
        return {name: content for name, content in self._found.items() if name.startswith(prefix)}

    def put(self, name: str, content: bytes, then: Callable[[], None] | None = None) -> None:
        self._found[name] = content
        if not content:
            del self._found[name]
        self._keep(name, content, then)
