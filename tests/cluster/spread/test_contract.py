"""Every kind of address, order, redelivery, questions, back-pressure, loops, expiry and requests, with sender and recipients on
different hosts; those tests know nothing of it.

Left out is what is about one daemon or its connections: frames, limits of a connection, and daemons that are killed.
"""

from __future__ import annotations

from tests.integration.wire.test_backpressure import *  # noqa: F403
from tests.integration.wire.test_loops import *  # noqa: F403
from tests.integration.wire.test_order_and_redelivery import *  # noqa: F403
from tests.integration.wire.test_requests import *  # noqa: F403
from tests.integration.wire.test_routing import *  # noqa: F403
from tests.integration.wire.test_sending import *  # noqa: F403
from tests.integration.wire.test_sync import *  # noqa: F403
from tests.integration.wire.test_ttl_and_dead_letters import *  # noqa: F403
