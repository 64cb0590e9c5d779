"""Copying a project's history between its stores while no daemon runs, and checking that it arrived whole."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.daemon.config import Config
from agent_relay.ports.store import StoreError, StoreUnusable
from agent_relay.protocol import places
from agent_relay.storage.copies import CopyEnd, OpenEnd, Progress, Totals, copy_history
from agent_relay.storage.sqlite.copy import SqliteCopyEnd

__all__ = ["KINDS", "CopyFailed", "Totals", "copy_project", "copy_store"]

KINDS = ("sqlite", "postgres")


class CopyFailed(Exception):  # noqa: N818 - named by the condition
    """The copy could not be made, or not go on; the text says why."""


def copy_project(
    source: str, target: str, config: Config, progress: Progress, checking: Callable[[], None]
) -> dict[str, tuple[Totals, Totals]]:
    """Copies from one kind of store to another, those that the settings name. Raises CopyFailed."""
    try:
        return copy_store(_make_end(source, config), _make_end(target, config), progress, checking)
    except (StoreUnusable, StoreError) as error:
        raise CopyFailed(str(error)) from None


def _make_end(kind: str, config: Config) -> CopyEnd:
    """Raises StoreUnusable."""
    if kind == "sqlite":
        return SqliteCopyEnd(config.storage_path)
    from agent_relay.storage.postgres.copy import PostgresCopyEnd  # noqa: PLC0415 - needs the driver
    from agent_relay.storage.postgres.url import read_url  # noqa: PLC0415

    if config.storage_url is None:
        raise StoreUnusable("PostgreSQL needs --storage-url or AGENT_RELAY_STORAGE_URL, such as postgresql://user@host/database.")
    return PostgresCopyEnd(read_url(config.storage_url, places.project_id(config.project_root)), config.project_root)


def copy_store(
    source: CopyEnd, target: CopyEnd, progress: Progress, checking: Callable[[], None]
) -> dict[str, tuple[Totals, Totals]]:
    """The totals of each table, at the source and at the target. Only where all of them agree is the target used from then on.
    Raises StoreUnusable and StoreError."""
    reading = OpenEnd(source)
    try:
        writing = OpenEnd(target, source.location)
        try:
            copy_history(reading, writing, progress)
        finally:
            writing.close()
        checking()
        writing = OpenEnd(target, source.location)  # as it is found by whoever opens it
        try:
            there = writing.total()
        finally:
            writing.close()
        here = reading.total()
        if here == there:
            target.finish(reading.snapshot)
            target.close()
        return {name: (here[name], there[name]) for name in here}
    finally:
        reading.close()
