"""This host's copy of the log: its database, open at an edge and at the seat, and its exchange with other hosts' as a whole."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.cluster.copy import Applied, Copy
from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.log import JetStreamLog
from agent_relay.cluster.transfer import CopyGiver, CopyTaker
from agent_relay.daemon.cluster.copies import HostFiles
from agent_relay.daemon.config import Config
from agent_relay.daemon.logs import logger
from agent_relay.ports.cluster import Wire
from agent_relay.ports.log import Log
from agent_relay.ports.store import Snapshot, StoreUnusable
from agent_relay.protocol import places
from agent_relay.storage.kept_records import KeptRecords
from agent_relay.storage.posting import Post
from agent_relay.storage.sqlite.store import SqliteStore

_PRUNED_EVERY_MS = 10_000
_PRUNED_AT_ONCE = 500
_FOREIGN = (
    "{} holds messages from before this project had a cluster, and the other hosts do not have them. Move the file away to join "
    "the cluster without them."
)


class HostCopy:
    """`applied` hears of each record that is stored; `began`, of the copy as it is when it begins to follow the log; `erased`, of
    an agent that is not in it any more."""

    def __init__(
        self, config: Config, host: str, wire: Wire, names: Names, log: JetStreamLog, kept: KeptRecords, post: Post,
        find_holder: Callable[[], str], began: Callable[[Snapshot], None], applied: Applied, erased: Callable[[str], None],
        notes: Log, now: int,
    ) -> None:  # fmt: skip
        self._config = config
        self._log = log
        self._kept = kept
        self._post = post
        self._began = began
        self._applied = applied
        self._tell_erased = erased
        self._notes = notes
        self._files = HostFiles(config.storage_path, config.file(places.CLUSTER_COPY_FOLDER), config.state_dir)
        self._giver = CopyGiver(wire, names, host, self._files, notes, now)
        self._taker = CopyTaker(wire, names, self._files, find_holder, self._take_over, notes, now)
        self._pruned_at = now
        self.store = self._make_store()
        self._copy = self._make_copy(0)

    def _make_store(self) -> SqliteStore:
        """Without a flush for each batch: the log is the truth. A store is opened once."""
        return SqliteStore(self._config.storage_path, self._post, "normal", is_copy=True)

    def _make_copy(self, position: int) -> Copy:
        return Copy(self.store, position, self._applied, self._notes, self._erased)

    # --- at an edge -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Raises StoreUnusable, also where the database is not of this cluster."""
        snapshot = self.store.open()
        if not snapshot.position and (snapshot.last_number or snapshot.agents):
            self.store.close()
            raise StoreUnusable(_FOREIGN.format(self._config.storage_path))
        self._follow(snapshot)

    def follow(self) -> None:
        self._follow(self.store.open())

    def _follow(self, snapshot: Snapshot) -> None:
        self._copy = self._make_copy(snapshot.position)
        self._copy.documents = snapshot.documents
        self._began(snapshot)
        self._log.follow(snapshot.position, self.apply)

    def apply(self, sequence: int, record: bytes) -> None:
        self._copy.heard(sequence, record)

    def clock_says(self, now: int, wall_ms: int, *, is_edge: bool) -> None:
        self._copy.clock_says(now)
        self._giver.clock_says(now)
        self._taker.clock_says(now)
        if is_edge and self._log.is_behind:
            self._taker.begin(self._log.first - 1)
        if is_edge and now >= self._pruned_at + _PRUNED_EVERY_MS:
            # At the seat the core does it. What is owed stays everywhere: copies differ in old history only.
            self._pruned_at = now
            before = wall_ms - self._config.limits.message_retention_ms
            self.store.prune(before, _PRUNED_AT_ONCE, lambda _outcome: None)

    def _take_over(self) -> None:
        """Another host's database is here, whole: it takes the place of ours, and the log is followed from where it ends."""
        self._log.unfollow()
        self._copy.close()
        self.close_store()
        try:
            self._files.put_in_place()
        except OSError as error:  # ours is still behind, and so it begins again
            logger.warning("cluster_copy_failed", extra={"relay_fields": {"error": str(error)}})
        self.follow()

    def unfollow(self) -> None:
        self._taker.stop()
        self._copy.close()
        self.close_store()

    def close_store(self) -> None:
        self.store.close()
        self.store = self._make_store()

    # --- for both -------------------------------------------------------------------------------------------------------

    @property
    def documents(self) -> dict[str, bytes]:
        return self._copy.documents

    @property
    def trouble(self) -> str:
        return self._copy.trouble

    @property
    def lag(self) -> str:
        """The copy of another host's database that is under way, in words; "": none is."""
        if not self._taker.is_taking:
            return ""
        return " ".join(filter(None, ("This host's copy is behind the log.", self._taker.progress, self._taker.trouble)))

    def _erased(self, agent: str) -> None:
        self.forget_records()
        self._files.erase_agent(agent)
        self._tell_erased(agent)

    def forget_records(self) -> None:
        """They hold what was erased."""
        self._kept.forget()
        self._giver.forget()

    def close(self) -> None:
        self._files.close()
