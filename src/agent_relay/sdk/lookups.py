"""Lookups of a client, be it an agent or an observer: who is there, what was said, what happens.

Nothing is changed by it, so every question may be asked again after a lost connection.
"""

from __future__ import annotations

from collections.abc import Iterable

from agent_relay.protocol import payloads
from agent_relay.protocol.channels import gather_channels
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import EVENTS_TOPIC
from agent_relay.sdk.engine import Engine
from agent_relay.sdk.events import EventFeed, EventsPage, read_events
from agent_relay.sdk.queries import expect
from agent_relay.sdk.views import AgentsView, ChannelInfo, HistoryPage, MessageView, read_agent

_CONVERSATIONS = 1_000  # the most that the daemon tells at once


class Lookups:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._queries = engine.queries

    async def agents(self) -> AgentsView:
        first = found = await self._list_agents(None)
        raws = {raw.get("name"): raw for raw in found.agents}
        while found.next_cursor is not None:
            found = await self._list_agents(found.next_cursor)
            raws |= {raw.get("name"): raw for raw in found.agents}  # one that left meanwhile comes again
        return AgentsView([read_agent(raw) for raw in raws.values()], first.server, first.sessions)

    async def history(
        self,
        *,
        with_: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        topic: str | None = None,
        thread: str | None = None,
        kind: str | None = None,
        search: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
        pending: bool = False,
        oldest_first: bool = False,
    ) -> HistoryPage:
        """Messages, newest first. `since` and `until` are milliseconds since 1970; `pending`: only what `to` has not
        acknowledged. With `oldest_first` they come in the order they were sent, those after `cursor`."""
        asked = payloads.HistoryPayload(
            with_=with_, from_=from_, to=to, topic=topic, thread=thread, kind=kind, search=search, since=since,
            until=until, limit=limit, cursor=cursor, pending=pending, oldest_first=oldest_first,
        )  # fmt: skip
        found = await self._ask_history(asked)
        return HistoryPage(found.messages, found.next_cursor)

    async def channels(self) -> list[ChannelInfo]:
        """Every channel that has members, or in which something was said, by name."""
        view = await self.agents()
        agents, topic_lines = [agent.raw for agent in view.agents], view.server.get("topic_lines") or {}
        asked = payloads.HistoryPayload(view="conversations", limit=_CONVERSATIONS)
        said = (await self._ask_history(asked)).conversations
        return [ChannelInfo(*facts) for facts in gather_channels(agents, said, topic_lines)]

    async def message(self, message_id: str) -> MessageView:
        """One message and everything that happened to it."""
        found = await self._ask_history(payloads.HistoryPayload(view="message", id=message_id))
        if not found.messages:
            raise RelayError(ErrorCode.ROUTE_NOT_FOUND, f"There is no message {message_id}.")
        return MessageView(found.messages[0], found.trail)

    async def dead_letters(self, limit: int = 50) -> HistoryPage:
        found = await self._ask_history(payloads.HistoryPayload(view="dead_letters", limit=limit))
        return HistoryPage(found.messages, found.next_cursor)

    def events(
        self,
        types: Iterable[str] = (),
        *,
        agent: str | None = None,
        session_id: str | None = None,
        after_seq: int | None = None,
        since: int | None = None,
        timeout: float | None = None,
    ) -> EventFeed:
        """Iterates over the relay's events: `types` such as `permission.requested` or `item.*` (none: all), of one agent
        or session. It begins after the event of that number (0: with the oldest there is), or at that moment (milliseconds
        since 1970), and otherwise now: with the loop, or with `async with`.

        The loop ends when the client is closed, or when `timeout` seconds pass without an event.
        """
        asked = payloads.SubscribePayload(EVENTS_TOPIC, list(types), agent, session_id, after_seq, since)
        return EventFeed(self._engine.events, asked, timeout)

    async def past_events(
        self,
        types: Iterable[str] = (),
        *,
        agent: str | None = None,
        session_id: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> EventsPage:
        """Events that are recorded, oldest first; `cursor` is the last page's `next_cursor`, or the number of an event to go on
        after."""
        asked = payloads.HistoryPayload(
            view="events", types=list(types), with_=agent, session_id=session_id, since=since, until=until, limit=limit,
            cursor=cursor,
        )  # fmt: skip
        found = await self._ask_history(asked)
        return EventsPage(read_events(found.events), found.next_cursor)

    async def _list_agents(self, cursor: str | None) -> payloads.AgentsPayload:
        return expect(payloads.AgentsPayload, await self._queries.ask("LIST_AGENTS", payloads.ListAgentsPayload(cursor)))

    async def _ask_history(self, asked: payloads.HistoryPayload) -> payloads.HistoryResultPayload:
        return expect(payloads.HistoryResultPayload, await self._queries.ask("HISTORY", asked))
