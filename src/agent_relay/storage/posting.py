"""Handing answers back to the event loop from whichever thread has them."""

from __future__ import annotations

import logging
from collections.abc import Callable

Post = Callable[[Callable[[], None]], None]  # runs a callback on the loop, soon; `loop.call_soon_threadsafe` is one

_log = logging.getLogger(__name__)


def post_answer(post: Post, callback: Callable[[], None]) -> None:
    """A loop that is closed takes no callbacks any more; the thread that has the answer goes on all the same."""
    try:
        post(callback)
    except Exception:  # noqa: BLE001 - whatever the loop says: a store's thread must not die of it
        _log.warning("The event loop took no answer from the store; it is probably closed.")
