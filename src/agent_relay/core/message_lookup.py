"""One message by what a person says of it: its id, or the short one that people and agents are shown."""

from __future__ import annotations

from collections.abc import Callable, Collection

from agent_relay.ports.store import MessageQuery, MessageRow, MessageStore, Page, StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.protocol.short_ids import AMBIGUOUS, read_short_id, stands_for
from agent_relay.protocol.ulid import number_of

SEARCHED_MESSAGES = 10_000  # the newest that a short id is looked for among: days of most projects, some 100 ms of reading
_PAGE = 500
_NAMED = 5  # of those that an ambiguous id may mean

Found = Callable[["MessageRow | RelayError"], None]


def find_message(store: MessageStore, wanted: str, done: Found, among: Collection[int] | None = None) -> None:
    """Raises RelayError for what is no id at all. `among`: the numbers of the only messages that may be meant by a short id."""
    short = read_short_id(wanted)
    if short is not None:
        _Search(store, short, done).begin(among)
        return
    try:
        number = number_of(wanted.removeprefix("msg_"))
    except ValueError:
        raise RelayError(
            ErrorCode.INVALID_FORMAT, f"{show(wanted, 80)} is not a message id: an id is `msg_` and 26 characters, or the 8 "
            "digits that `agent-relay history` shows.", field="payload.id",
        ) from None  # fmt: skip

    def found(page: Page | StoreError) -> None:
        if isinstance(page, StoreError):
            done(unreadable(page))
        elif page.messages and page.messages[0].id == wanted:
            done(page.messages[0])
        else:
            done(_unknown(wanted, "it may be older than the history"))

    store.fetch([number], found)


class _Search:
    """Of the newest messages, page by page."""

    def __init__(self, store: MessageStore, short: str, done: Found) -> None:
        self._store = store
        self._short = short
        self._done = done
        self._found: list[MessageRow] = []
        self._left = SEARCHED_MESSAGES

    def begin(self, among: Collection[int] | None) -> None:
        if among is None:
            self._ask(None)
        else:
            self._store.fetch(sorted(among), self._read)

    def _ask(self, before: int | None) -> None:
        self._store.find(MessageQuery(before=before, limit=_PAGE), self._read)

    def _read(self, page: Page | StoreError) -> None:
        if isinstance(page, StoreError):
            self._done(unreadable(page))
            return
        self._found += [row for row in page.messages if stands_for(self._short, row.id)]
        self._left -= len(page.messages)
        if page.next_before is not None and self._left > 0:
            self._ask(page.next_before)
        elif len(self._found) == 1:
            self._done(self._found[0])
        elif self._found:
            self._done(_ambiguous(self._found))
        else:
            self._done(_unknown(self._short, f"a short id is looked for among the newest {SEARCHED_MESSAGES:,} messages"))


def _unknown(wanted: str, why: str) -> RelayError:
    return RelayError(ErrorCode.ROUTE_NOT_FOUND, f"There is no message {show(wanted, 80)}; {why}.")


def _ambiguous(rows: list[MessageRow]) -> RelayError:
    ids = [row.id for row in rows[:_NAMED]]
    return RelayError(ErrorCode.INVALID_FORMAT, f"{AMBIGUOUS} It may be {', '.join(ids)}.", field="payload.id", ids=ids)


def unreadable(error: StoreError) -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"The store could not be read ({error}).", retry_after_ms=1_000)
