"""Orders of a client: steer, start, stop and remove agents, retry a dead letter, change how the relay is set up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_relay.protocol import payloads
from agent_relay.protocol.access_rules import AccessRule
from agent_relay.protocol.shadows import Shadowing
from agent_relay.sdk.lookups import Lookups
from agent_relay.sdk.queries import expect
from agent_relay.sdk.views import Spawned


class Orders(Lookups):
    """The part of a client that commands; whether it may, the daemon decides."""

    async def control(self, agent: str, command: str, text: str | None = None, *, request_id: str | None = None) -> str:
        """`pause`, `resume`, `interrupt`, `stop`, or `input` with a text: for an agent that the relay runs. `approve`, `deny`
        (with a reason) and `answer` are for one of its open requests, and return when the agent has the answer.

        Returns its name as the daemon spells it, once the command is handed over. It is never sent twice: if the connection
        breaks before the answer, ConnectionLost is raised.
        """
        asked = {"command": command, "agent": agent, "text": text, **({"id": request_id} if request_id else {})}
        return expect(payloads.ReceiptPayload, await self._queries.ask_once("CONTROL", asked)).by or agent

    async def spawn(
        self,
        name: str,
        cli: str,
        task: str | None = None,
        *,
        cwd: str | None = None,
        backend: str = "auto",
        environment: Mapping[str, str] | None = None,
        permission_mode: str | None = None,
        sandbox: bool = False,
        ephemeral: bool = False,
        host: str | None = None,
        run: str | None = None,
        model: str | None = None,
        role: str | None = None,
        team: str | None = None,
        restarts: int = 0,
        budget_usd: float | None = None,
        transport: str = "terminal",
    ) -> Spawned:
        """Starts a CLI as an agent of that name; returns once its program runs. `cli` is one that the relay
        knows (claude, codex, …) or that the settings allow; `task` is the first message it gets, from this agent;
        `permission_mode` is one of that CLI's own (`plan`, `acceptEdits`, …); `sandbox` runs it in a sandbox. An `ephemeral`
        agent leaves nothing: when it ends, its name is removed, and senders of undelivered messages are told. `host` is one of
        the cluster; without it, the least loaded that allows it: this one, unless others list it in `cluster_control`. With
        `run`, an id of your own, the agent belongs to this session: it is released when this client is gone for good.
        `model` is as the CLI calls it; `role` and `team` are kept with the session; `restarts` is how often a crash starts it
        again; it is released once its session has cost `budget_usd`. With the `transport` `acp` it runs by the Agent Client
        Protocol, for a CLI that speaks it.

        A reconnection repeats the request without starting a second agent.
        """
        asked = payloads.SpawnPayload(
            name=name, cli=cli, task=task, cwd=cwd, backend=backend, environment=dict(environment or {}),
            permission_mode=permission_mode, sandbox=sandbox, ephemeral=ephemeral, host=host, run=run, model=model, role=role,
            team=team, restarts=restarts, budget_usd=budget_usd, transport=transport,
        )  # fmt: skip
        found = expect(payloads.SpawnResultPayload, await self._queries.ask("SPAWN", asked))
        return Spawned(found.name, found.session_id or "")

    async def release(self, name: str, reason: str | None = None) -> None:
        """Stops an agent that the daemon started; returns once its program has ended."""
        await self._queries.ask("RELEASE", payloads.ReleasePayload(name, reason))

    async def change_host(self, host: str, command: str) -> None:
        """`exclude_host` or `include_host`: whether a host takes part in the cluster. Returns once it is decided for good."""
        await self._queries.ask_once("CONTROL", {"command": command, "host": host})

    async def set_team(self, sha256: str, rules: Sequence[AccessRule], shadows: Sequence[Shadowing] = ()) -> None:
        """Puts a team's rules and shadows in force, in place of those before; with none, everything is open and nobody gets
        copies. For the owner. Returns once they are durable."""
        asked = payloads.ControlPayload("set_team", id=sha256, rules=list(rules), shadows=list(shadows))
        await self._queries.ask_once("CONTROL", asked)

    async def retry_dead_letter(self, message_id: str) -> str:
        """Sends it once more, as a new message, and returns the new one's id."""
        asked = {"command": "retry_dead_letter", "id": message_id}
        return expect(payloads.ReceiptPayload, await self._queries.ask("CONTROL", asked)).message_id or ""

    async def count_data(self, agent: str) -> dict[str, int]:
        """Counts an agent's messages that are still on their way: `undelivered_from` it, and `undelivered_to` it."""
        return await self._order("count_data", agent)

    async def forget(self, agent: str) -> dict[str, int]:
        """Erases everything kept about an agent that is not running, and returns how much that was. For observers."""
        return await self._order("forget", agent)

    async def remove(self, agent: str) -> int:
        """Removes an agent that is not running from the lists, and returns how many messages waiting for it became dead
        letters. The history stays. For observers."""
        return (await self._order("remove", agent))["dead_letters"]

    async def _order(self, command: str, agent: str) -> dict[str, int]:
        receipt = expect(payloads.ReceiptPayload, await self._queries.ask_once("CONTROL", {"command": command, "agent": agent}))
        counts: dict[str, int] = receipt.responseData
        return counts
