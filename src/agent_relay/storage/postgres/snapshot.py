"""The snapshot for the core at start. Of messages only what came in the last seconds is looked at, however many are stored."""

from __future__ import annotations

from agent_relay.ports.store import Snapshot, StoreError, StoreUnusable, Waiting
from agent_relay.storage.postgres import rows
from agent_relay.storage.postgres.connection import Record
from agent_relay.storage.postgres.session import Session

_ADOPT = "SELECT adopt_later($1, $2)"
_WAITING = (
    "SELECT min(recipient) AS recipient, count(*) AS count, sum(size)::bigint AS size FROM backlog GROUP BY lower(recipient)"
)


async def load_snapshot(session: Session, state: Record) -> Snapshot:
    """Raises StoreUnusable."""
    adopted = await session.change(_ADOPT)
    if isinstance(adopted, StoreError):
        raise StoreUnusable(str(adopted))

    async def read(query: str) -> list[Record]:
        found = await session.fetch(query)
        if found is None:
            raise StoreUnusable(f"{session.url.location} cannot be read; try again.")
        return found

    return Snapshot(
        agents=[rows.read_agent(row) for row in await read("SELECT * FROM agents ORDER BY registered_at, lower(name)")],
        spent_tokens=[rows.read_token(row) for row in await read("SELECT * FROM spent_tokens ORDER BY spent_at")],
        subscriptions=[rows.read_subscription(row) for row in await read("SELECT * FROM subscriptions")],
        members=[rows.read_member(row) for row in await read("SELECT * FROM members")],
        streams=[rows.read_stream(row) for row in await read("SELECT * FROM streams")],
        waiting=[Waiting(row["recipient"], row["count"], row["size"]) for row in await read(_WAITING)],
        dead_letters=[rows.read_dead_letter(row) for row in await read("SELECT * FROM dead_letters ORDER BY at, number")],
        last_number=state["last_number"],
        first_seq=state["first_seq"],
    )
