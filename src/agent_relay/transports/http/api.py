"""The parts that the routes work with. A part that is None is not there, and its routes say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct, field

from agent_relay.events.bus import EventBus
from agent_relay.events.prices import Prices
from agent_relay.ports.callers import HttpCallers
from agent_relay.ports.pages import Assets
from agent_relay.ports.permission_rules import PermissionRules
from agent_relay.ports.service import RelayService
from agent_relay.ports.watchers import AgentFileReader, Budgets, LiveScreens, Projects, ScreenReader, StartableCli, Workspaces
from agent_relay.protocol.hosts import ClusterFacts
from agent_relay.transports.arc.desk import Desk
from agent_relay.transports.http.activity import ActivityBoard
from agent_relay.transports.http.errors import unavailable
from agent_relay.transports.http.guesses import Guesses
from agent_relay.transports.http.keyboards import Keyboards
from agent_relay.transports.http.marks import Marks
from agent_relay.transports.http.mcp.sessions import McpSessions
from agent_relay.transports.http.metrics import Metrics
from agent_relay.transports.http.page_keys import PageKeys
from agent_relay.transports.http.repeats import Repeats
from agent_relay.transports.http.sse import Streams
from agent_relay.transports.http.usage import UsageBoard

T = TypeVar("T")


class Api(Struct, frozen=True):
    service: RelayService
    bus: EventBus
    streams: Streams
    metrics: Metrics
    description: Callable[[], bytes]  # OpenAPI
    wall_ms: Callable[[], int]
    read_prices: Callable[[], Prices]
    screens: ScreenReader
    live_screens: LiveScreens
    keyboards: Keyboards
    usage: UsageBoard
    activity: ActivityBoard
    workspaces: Workspaces
    assets: Assets
    token_hash: str | None  # None: nobody is asked for a token
    page_keys: PageKeys
    guesses: Guesses
    is_encrypted: bool  # HTTPS
    files: AgentFileReader
    repeats: Repeats
    marks: Marks
    budgets: Budgets | None = None
    projects: Projects | None = None
    list_clis: Callable[[], list[StartableCli]] = list  # blocks
    permission_rules: PermissionRules | None = None  # None: in a cluster each host has its own file
    arc: Desk | None = None
    callers: HttpCallers | None = None  # None: nobody asks in whose terminal a request was made
    is_ready: Callable[[], bool] = bool
    mcp: McpSessions = field(default_factory=McpSessions)
    see_cluster: Callable[[], ClusterFacts] | None = None  # None: the daemon is alone


def need(part: T | None, what: str) -> T:
    if part is None:
        raise unavailable(f"This daemon runs without {what}.")
    return part
