"""Some of the wire contract's suite, with an edge in place of the daemon; those tests know nothing of it.

Left out is what an edge does not do: it serves no other users, and says no BYE when it stops. A client that comes right after
it has started is told to try again.
"""

from __future__ import annotations

from tests.integration.wire.test_backpressure import (
    test_a_reader_that_does_not_read_disturbs_nobody_and_loses_nothing,
    test_a_slow_reader_that_makes_progress_is_kept,
)
from tests.integration.wire.test_order_and_redelivery import *  # noqa: F403
from tests.integration.wire.test_routing import *  # noqa: F403
from tests.integration.wire.test_sync import *  # noqa: F403

__all__ = [
    "test_a_reader_that_does_not_read_disturbs_nobody_and_loses_nothing",
    "test_a_slow_reader_that_makes_progress_is_kept",
]
