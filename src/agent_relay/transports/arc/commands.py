"""Commands of a client to the relay itself: frames with `relay` in their `to`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn

from agent_relay.ports.service import RelayService
from agent_relay.ports.store import StoreError
from agent_relay.protocol.arc.client_frames import Said, read_payload, read_ref
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import fold_name, is_name
from agent_relay.transports.arc.persistence import Persistence

if TYPE_CHECKING:
    from agent_relay.transports.arc.connection import ArcConnection
    from agent_relay.transports.arc.hub import Hub

_MOST_LOOKUPS = 8  # commands of one connection that are being answered at the same time
_MOST_SUBSCRIPTIONS = 1_000  # every answer to a change names them all
_MOST_CHANGES = 32  # of one connection's subscriptions that are being stored at the same time

log = logging.getLogger(__name__)

Lookup = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class Commands:
    def __init__(self, hub: Hub, service: RelayService) -> None:
        self._hub = hub
        persistence = Persistence(service, hub.registrar.is_arc, hub.registrar.registered_at)
        self._lookups: dict[str, Lookup] = {
            "history": persistence.history, "search": persistence.search, "replay": persistence.replay,
        }  # fmt: skip
        self._tasks: set[asyncio.Task[None]] = set()

    def carry_out(self, connection: ArcConnection, said: Said) -> None:
        """Raises ArcProblem. A payload is looked at where it is used, and nowhere else."""
        ref = read_ref(said)
        try:
            match said.type:
                case "ping":
                    self._hub.answer(connection, "pong", {}, ref)
                case "subscribe":
                    self._subscribe(connection, read_payload(said), ref, active=True)
                case "unsubscribe":
                    self._subscribe(connection, read_payload(said), ref, active=False)
                case "list_subscriptions":
                    agents = self._hub.names.followed(connection.agent_id)
                    self._hub.answer(connection, "subscriptions", {"agents": agents}, ref)
                case "command":
                    self._command(connection, read_payload(said), ref)
                case other:
                    what = "a frame without a `type`" if other is None else f"the type {other[:80]!r}"
                    raise ArcProblem(ArcCode.UNKNOWN_TYPE, f"The relay does not know {what}.", ref)
        except ArcProblem as problem:
            problem.ref = ref
            raise

    # --- subscriptions --------------------------------------------------------------------------------------------------

    def _subscribe(self, connection: ArcConnection, payload: dict[str, Any], ref: Any, *, active: bool) -> None:
        names = payload.get("agents", payload.get("subscribe_to"))
        if not isinstance(names, list) or not names:
            _refuse("`payload.agents` must be an array of agent ids.")
        if not all(isinstance(name, str) and is_name(name) for name in names):
            _refuse("`payload.agents` contains an invalid agent id.")
        if connection.changes >= _MOST_CHANGES:
            raise _too_many()
        me = connection.agent_id
        if active and len({*self._hub.names.followed(me), *map(fold_name, names)}) > _MOST_SUBSCRIPTIONS:
            raise ArcProblem(ArcCode.RATE_LIMIT, f"At most {_MOST_SUBSCRIPTIONS} subscriptions are allowed.")
        connection.changes += 1

        def done(error: StoreError | None) -> None:
            connection.changes -= 1
            if error is not None:
                if connection.is_open:
                    connection.refuse(
                        ArcProblem(ArcCode.RATE_LIMIT, f"The subscription could not be stored ({error}). Try again.", ref)
                    )
                return
            agents = self._hub.names.followed(me)
            kind = "subscribed" if active else "unsubscribed"
            self._hub.answer(connection, kind, {"agents": agents, "count": len(agents)}, ref)

        self._hub.names.follow(me, names, done, active=active)

    # --- commands -------------------------------------------------------------------------------------------------------

    def _command(self, connection: ArcConnection, payload: dict[str, Any], ref: Any) -> None:
        command = payload.get("command")
        if not isinstance(command, str):
            _refuse("`payload.command` must be a string.")
        match command:
            case "presence_list":
                agents = [{"agent": name, "connected": is_here} for name, is_here in sorted(self._hub.names.present())]
                self._hub.answer(connection, "command_result", {"command": command, "agents": agents}, ref)
            case "presence_subscribe" | "presence_unsubscribe":
                is_on = command == "presence_subscribe"
                self._hub.tell_presence(connection, is_on=is_on)
                self._hub.answer(connection, "command_result", {"command": command, "on": is_on}, ref)
            case _:
                lookup = self._lookups.get(command) or self._find_hook(command)
                if lookup is None:
                    raise ArcProblem(ArcCode.UNKNOWN_TYPE, f"The relay does not know the command {command[:80]!r}.")
                if connection.lookups >= _MOST_LOOKUPS:
                    raise _too_many()
                connection.lookups += 1
                task = asyncio.get_running_loop().create_task(self._look_up(connection, lookup, command, payload, ref))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _find_hook(self, command: str) -> Lookup | None:
        """`word:count` is the command `count` of the hook `word`."""
        name, separator, rest = command.partition(":")
        for hook in self._hub.hooks:
            if separator and hook.name == name:
                return lambda agent_id, payload: hook.ask(agent_id, rest, payload)
        return None

    async def _look_up(self, connection: ArcConnection, lookup: Lookup, command: str, payload: dict[str, Any], ref: Any) -> None:
        written = asyncio.get_running_loop().create_future()
        self._hub.pump.run(lambda: self._hub.names.when_written(lambda: written.set_result(None)))
        try:
            await written
            answer = await lookup(connection.agent_id, payload)
            self._hub.answer(connection, "command_result", {"command": command} | answer, ref)
        except ArcProblem as problem:
            problem.ref = ref
            if connection.is_open:
                connection.refuse(problem)
        except RelayError as error:
            if connection.is_open:
                connection.refuse(ArcProblem(ArcCode.RATE_LIMIT, error.message, ref))
        except Exception:
            log.exception("internal_error")
            if connection.is_open:
                connection.refuse(ArcProblem(ArcCode.RATE_LIMIT, "The relay could not look that up. Try again.", ref))
        finally:
            connection.lookups -= 1


def _too_many() -> ArcProblem:
    return ArcProblem(ArcCode.RATE_LIMIT, "Too many open requests; wait for their responses.")


def _refuse(message: str) -> NoReturn:
    raise ArcProblem(ArcCode.INVALID_MESSAGE, message)
