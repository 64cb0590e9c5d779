"""One message by what a person says of it: its id, or the short one that people and agents are shown."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.ports.store import DeadLetterQuery, DeadLetterRow, MessageQuery, MessageRow, MessageStore, Page, StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, show
from agent_relay.protocol.short_ids import AMBIGUOUS, read_short_id, stands_for
from agent_relay.protocol.ulid import number_of

SEARCHED_MESSAGES = 10_000  # the newest that a short id is looked for among: days of most projects, some 100 ms of reading
_PAGE = 500
_NAMED = 5  # of those that an ambiguous id may mean

Found = Callable[["Page | RelayError"], None]  # a page of that message alone


def find_message(store: MessageStore, wanted: str, done: Found) -> None:
    """Raises RelayError for what is no id at all."""
    short = read_short_id(wanted)
    if short is not None:
        _Search(store, short, done).begin()
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
            done(page)
        else:
            done(_unknown(wanted, "it may be older than the history"))

    store.fetch([number], found)


def find_dead_letter(store: MessageStore, wanted: str, done: Found) -> None:
    """The same; a short id means a dead letter."""
    short = read_short_id(wanted)
    if short is None:
        find_message(store, wanted, done)
        return

    def found(letters: list[tuple[DeadLetterRow, MessageRow]] | StoreError) -> None:
        if isinstance(letters, StoreError):
            done(unreadable(letters))
            return
        rows = {row.number: row for _, row in letters}
        dead = frozenset((letter.number, fold_name(letter.recipient)) for letter, _ in letters)
        _Search(store, short, done).read(Page(list(rows.values()), dead=dead))

    store.dead_letters(DeadLetterQuery(limit=SEARCHED_MESSAGES), found)


class _Search:
    """Of the newest messages, page by page."""

    def __init__(self, store: MessageStore, short: str, done: Found) -> None:
        self._store = store
        self._short = short
        self._done = done
        self._found: list[Page] = []
        self._left = SEARCHED_MESSAGES

    def begin(self, before: int | None = None) -> None:
        self._store.find(MessageQuery(before=before, limit=_PAGE), self.read)

    def read(self, page: Page | StoreError) -> None:
        if isinstance(page, StoreError):
            self._done(unreadable(page))
            return
        self._found += [Page([row], dead=page.dead) for row in page.messages if stands_for(self._short, row.id)]
        self._left -= len(page.messages)
        if page.next_before is not None and self._left > 0:
            self.begin(page.next_before)
        elif len(self._found) == 1:
            self._done(self._found[0])
        elif self._found:
            self._done(_ambiguous([page.messages[0] for page in self._found]))
        else:
            self._done(_unknown(self._short, f"a short id is looked for among the newest {SEARCHED_MESSAGES:,} messages"))


def _unknown(wanted: str, why: str) -> RelayError:
    return RelayError(ErrorCode.ROUTE_NOT_FOUND, f"There is no message {show(wanted, 80)}; {why}.")


def _ambiguous(rows: list[MessageRow]) -> RelayError:
    ids = [row.id for row in rows[:_NAMED]]
    return RelayError(ErrorCode.INVALID_FORMAT, f"{AMBIGUOUS} It may be {', '.join(ids)}.", field="payload.id", ids=ids)


def unreadable(error: StoreError) -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"The store could not be read ({error}).", retry_after_ms=1_000)
