"""The extension `persistence`: what was said, for those it was said to. Own messages and broadcasts, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from agent_relay.ports.service import RelayService
from agent_relay.ports.service import StoredMessage as Message
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.protocol.arc.translation import encode_envelope
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.names import BROADCAST, fold_name
from agent_relay.protocol.payloads import LARGEST_NUMBER, HistoryPayload
from agent_relay.protocol.ulid import number_of, time_of_number

_USUAL, _MOST = 50, 500
_ANSWER_BYTES = 512 * 1024  # well within what clients take in one frame
_PAGE, _PAGES = 200, 200  # a look back ends after so many of so many, and says that there is more


class Persistence:
    def __init__(self, service: RelayService, is_arc: Callable[[str], bool], registered_at: Callable[[str], int]) -> None:
        self._service = service
        self._is_arc = is_arc
        self._registered_at = registered_at  # nobody sees what was said before

    async def history(self, agent_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        """The newest, oldest first."""
        since = _read_whole(payload, "since", None, LARGEST_NUMBER)
        return await self._newest(agent_id, _read_limit(payload), since=since)

    async def search(self, agent_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        query = payload.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ArcProblem(ArcCode.INVALID_MESSAGE, "`payload.query` must be a string with search words.")
        return await self._newest(agent_id, _read_limit(payload), search=query)

    async def replay(self, agent_id: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Everything after that message, from the oldest on, as far as it fits; the last one's id is where to go on."""
        after = payload.get("since_message_id")
        try:
            number = number_of(str(after).removeprefix("msg_"))
        except ValueError:
            raise ArcProblem(ArcCode.INVALID_MESSAGE, "`payload.since_message_id` must be a message id.") from None
        limit = _read_limit(payload, _MOST)
        found, more = await self._gather(agent_id, limit, number, since=time_of_number(number), oldest_first=True)
        return self._show(agent_id, found[:limit], more=more or len(found) > limit)

    async def _newest(self, agent_id: str, limit: int, **wanted: Any) -> dict[str, Any]:
        found, more = await self._gather(agent_id, limit, **wanted)
        return self._show(agent_id, found[-limit:], more=more or len(found) > limit, is_newest=True)

    async def _gather(self, agent_id: str, limit: int, after: int = -1, **wanted: Any) -> tuple[list[Message], bool]:
        """One more than `limit` where there are, oldest first; True: the look back ended before there were so many."""
        found: dict[str, Message] = {}
        is_cut = False
        wanted["since"] = max(wanted.get("since") or 0, self._registered_at(agent_id))
        for part in _parts(agent_id):
            asked = HistoryPayload(limit=min(limit + 1, _PAGE), **part, **wanted)  # which is all, where all can be seen
            seen, ended = await self._walk(agent_id, limit, after, asked)
            found |= seen
            is_cut |= not ended
        return sorted(found.values(), key=_number), is_cut

    async def _walk(self, agent_id: str, limit: int, after: int, asked: HistoryPayload) -> tuple[dict[str, Message], bool]:
        found: dict[str, Message] = {}
        for _ in range(_PAGES):
            page = await self._service.messages(asked)
            for message in page.messages:
                if _may_see(agent_id, message) and _number(message) > after:
                    found[message.message_id] = message
                    if len(found) > limit:
                        return found, True
            if page.next_cursor is None:
                return found, True
            asked = replace(asked, cursor=page.next_cursor, limit=_PAGE)
        return found, False

    def _show(self, agent_id: str, messages: list[Message], *, more: bool, is_newest: bool = False) -> dict[str, Any]:
        """As many as fit: the newest of them, or the oldest."""
        shown: list[Raw] = []
        size = 0
        for message in reversed(messages) if is_newest else messages:
            text = self._encode(agent_id, message)
            size += len(text)
            if size > _ANSWER_BYTES and shown:
                more = True
                break
            shown.append(Raw(text))
        return {"messages": shown[::-1] if is_newest else shown, "more": more}

    def _encode(self, agent_id: str, message: Message) -> bytes:
        sender = message.from_
        to = message.to or agent_id
        payload = encode_json(message.payload)
        return encode_envelope(
            message.message_id, sender, to, message.topic, payload, from_arc=self._is_arc(sender)
        )  # fmt: skip


def _parts(agent_id: str) -> tuple[dict[str, Any], ...]:
    return {"with_": agent_id}, {"to": BROADCAST}


def _may_see(agent_id: str, message: Message) -> bool:
    """A broadcast on a topic was for its subscribers alone."""
    if fold_name(message.from_) == agent_id or any(fold_name(place.name) == agent_id for place in message.recipients):
        return True
    return bool(message.to == BROADCAST and not message.topic)


def _number(message: Message) -> int:
    return number_of(message.message_id.removeprefix("msg_"))


def _read_limit(payload: dict[str, Any], usual: int = _USUAL) -> int:
    return _read_whole(payload, "limit", usual, _MOST) or usual


def _read_whole(payload: dict[str, Any], name: str, usual: int | None, most: int) -> int | None:
    value = payload.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or value < 0:
        raise ArcProblem(ArcCode.INVALID_MESSAGE, f"`payload.{name}` must be a whole number.")
    return min(int(value), most)
