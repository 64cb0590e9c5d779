"""ARC in the daemon: its store, its registrations and its hooks, put together once HTTP starts. Without HTTP there is none."""

from __future__ import annotations

import functools
import os
import pkgutil
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from agent_relay.daemon.config import Config
from agent_relay.daemon.logs import logger
from agent_relay.daemon.system import SystemEntropy
from agent_relay.ports.arc import ArcBook, ArcStore
from agent_relay.ports.clock import Clock
from agent_relay.ports.documents import Documents
from agent_relay.ports.names import AgentNames
from agent_relay.ports.service import RelayService
from agent_relay.ports.store import StoreUnusable
from agent_relay.protocol import places
from agent_relay.storage.arc_documents import DocumentArc
from agent_relay.storage.arc_memory import MemoryArc
from agent_relay.storage.sqlite.arc import SqliteArc
from agent_relay.transports.arc.desk import Desk
from agent_relay.transports.arc.hooks import HookRunner
from agent_relay.transports.arc.hub import Hub
from agent_relay.transports.arc.invitations import Invitations
from agent_relay.transports.arc.records import Records
from agent_relay.transports.arc.registrar import Registrar
from agent_relay.transports.pump import Pump


class Arc:
    def __init__(self, config: Config, post: Callable[[Callable[[], None]], None], documents: Documents | None = None) -> None:
        self._config = config
        if documents is not None:
            self._store: ArcStore = DocumentArc(documents, post)
        elif config.storage == "memory":
            self._store = MemoryArc(post)
        else:
            self._store = SqliteArc(config.file(places.ARC_FILE), post)
        self._book: ArcBook | None = None
        self._hooks: list[HookRunner] = []

    def open(self) -> None:
        """Blocks; call it in a thread. What fails is noted, and the relay goes on without ARC."""
        if not self._config.arc:
            return
        try:
            self._hooks = [HookRunner(_load(place)) for place in self._config.arc_hooks]
            self._book = self._store.open()
        except StoreUnusable as error:
            logger.warning("arc_unavailable", extra={"relay_fields": {"reason": str(error)}})

    def start(self, pump: Pump, names: AgentNames, service: RelayService, clock: Clock) -> tuple[Hub, Desk] | None:
        if self._book is None:
            return None
        settings, entropy, saved = self._config.arc_settings, SystemEntropy(), Records(self._store)
        registrar = Registrar(saved, names, settings, clock, entropy, pump.run)
        registrar.start(self._book.registrations)
        invitations = Invitations(saved, clock, entropy, self._book.invitations)
        hub = Hub(pump, registrar, names, service, settings, clock, entropy, self._hooks)
        return hub, Desk(registrar, invitations, hub, names, settings, clock)

    def close(self) -> None:
        self._store.close()


def _load(place: str) -> Any:
    """`module:attribute` or `/a/file.py:attribute`: a hook, or a class whose objects are hooks."""
    path, _, attribute = place.rpartition(":")
    try:
        found = getattr(_load_file(path), attribute) if os.path.isabs(path) else pkgutil.resolve_name(place)
    except (ImportError, AttributeError, ValueError, OSError, SyntaxError) as error:
        raise StoreUnusable(f"The hook {place} cannot be loaded ({error}).") from None
    return found() if isinstance(found, type) else found


@functools.cache  # hooks of one file share its module
def _load_file(path: str) -> ModuleType:
    name = f"arc_hooks_{os.path.splitext(os.path.basename(path))[0]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
