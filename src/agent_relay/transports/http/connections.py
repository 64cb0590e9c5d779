"""Limits of connections. Whoever has shown no token yet holds a place only until somebody else needs it.

To refuse newcomers would let a stranger who holds many connections keep the owner out; so it is the oldest of those that
nobody knows which makes room, of the address that has the most of them.
"""

from __future__ import annotations

from typing import Protocol

from agent_relay.transports.source import source_of

Client = tuple[str, int]  # address and port


class Line(Protocol):
    def abort(self) -> None: ...


class Connections:
    def __init__(self, most: int, most_unknown: int) -> None:
        self._most = most  # in all
        self._most_unknown = most_unknown  # of one address, before they have shown a token
        self._unknown: dict[str, dict[Client, Line]] = {}  # by source; the oldest first
        self._where: dict[Client, str] = {}  # the source of each unknown one
        self._known: set[Client] = set()

    def __len__(self) -> int:
        return len(self._where) + len(self._known)

    def opened(self, client: Client, line: Line) -> None:
        who = source_of(client[0])
        if len(self._unknown.get(who, ())) >= self._most_unknown:
            self._drop_oldest(who)
        elif len(self) >= self._most:
            if not self._unknown:
                line.abort()  # everybody here has a token
                return
            self._drop_oldest(max(self._unknown, key=lambda each: len(self._unknown[each])))
        self._unknown.setdefault(who, {})[client] = line
        self._where[client] = who

    def _drop_oldest(self, who: str) -> None:
        client, line = next(iter(self._unknown[who].items()))
        self.closed(client)
        line.abort()

    def know(self, client: Client) -> None:
        """It has shown a token, and stays for as long as it likes."""
        if client in self._where:
            self.closed(client)
            self._known.add(client)

    def closed(self, client: Client) -> None:
        """Or turned into something that is counted elsewhere."""
        self._known.discard(client)
        who = self._where.pop(client, None)
        if who is not None:
            del self._unknown[who][client]
            if not self._unknown[who]:
                del self._unknown[who]
