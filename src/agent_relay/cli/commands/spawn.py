"""`spawn` and `release`: agents that the daemon starts and ends."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import AgentName, Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.wrapper.outbox_commands import ask_through, own_outbox

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.locate import Place

_CLOSE_S = 2.0


def spawn(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name.", show_default=False)],
    cli: Annotated[str, typer.Argument(metavar="CLI", help="The program: claude, codex, gemini …", show_default=False)],
    task: Annotated[str | None, typer.Argument(metavar="TASK", help="Its first message; - reads it from standard input.")] = None,
    cwd: Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="Its working directory; by default this one.")] = None,
    backend: Annotated[
        str, typer.Option("--backend", metavar="auto|tmux|pty", help="Where it runs; auto is tmux if installed, else pty.")
    ] = "auto",
    permission_mode: Annotated[
        str | None, typer.Option("--permission-mode", metavar="MODE", help="A permission mode of its CLI, e.g. plan.")
    ] = None,
    sandbox: Annotated[
        bool,
        typer.Option("--sandbox", help="In a sandbox (bubblewrap, Linux); see the settings sandbox_network and sandbox_home."),
    ] = False,
    host: Annotated[
        str | None, typer.Option("--host", metavar="HOST", help="The host of the cluster to run it on; see `agent-relay hosts`.")
    ] = None,
    acp: Annotated[
        bool, typer.Option("--acp", help="By the Agent Client Protocol, for a CLI that speaks it; see docs/acp.md.")
    ] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Start an agent in the background; returns once its program runs.

    It keeps running without you, even without the daemon, until its program ends or you release it. The task is a message from
    you (inside a wrapped agent: from that agent); answers go to the sender.
    """
    from agent_relay.cli.commands.send import read_body
    from agent_relay.protocol.clis import ACP, TERMINAL

    place = find_place(socket, state_dir)
    words = read_body(task) if task is not None else None
    folder = find_folder(place, cwd)
    outbox = own_outbox(None, place.socket)
    if outbox is not None:
        if backend != "auto" or permission_mode is not None or sandbox or host is not None or acp:
            raise Failure(
                "Inside a wrapped agent, leave out --acp, --backend, --permission-mode, --sandbox and --host: a new agent gets "
                "the sandbox and the host of the one that starts it, and the rest cannot be chosen.", USAGE,
            )  # fmt: skip
        elsewhere = ""
        session_id = str(ask_through(outbox, kind="spawn", name=name, cli=cli, cwd=folder, body=words or "").get("session_id"))
    else:

        async def start(relay: RelayClient) -> tuple[str, str]:
            asked = relay.spawn(
                name, cli, words, cwd=folder, backend=backend, permission_mode=permission_mode, sandbox=sandbox,
                host=host, transport=ACP if acp else TERMINAL,
            )  # fmt: skip
            started = (await asked).session_id
            return started, await _find_other_host(relay, place, started)

        session_id, elsewhere = _run(place, start)
    screen = Screen()
    if as_json:
        screen.json({"name": name, "session_id": session_id} | ({"host": elsewhere} if elsewhere else {}))
        return 0
    where = f" on host {clean_line(elsewhere)}" if elsewhere else ""
    screen.line((f"{name} is running{where}", "bold green"), f"  {clean_line(session_id)}")
    if elsewhere:
        screen.line(("see it", "dim"), f"  agent-relay logs {name}; on {clean_line(elsewhere)} also agent-relay attach {name}")
    else:
        screen.line(("see it", "dim"), f"  agent-relay attach {name}, agent-relay logs {name}")
    return 0


async def _find_other_host(relay: RelayClient, place: Place, session_id: str) -> str:
    """The host of the cluster that it was started on; "" for this one."""
    from agent_relay.cli.project.cluster_file import read_cluster

    cluster = read_cluster(place.state_dir)
    if cluster is None:
        return ""
    sessions = (await relay.agents()).sessions
    found = next((str(one.get("host") or "") for one in sessions if one.get("session_id") == session_id), "")
    return "" if found == cluster.host else found


def find_folder(place: Place, cwd: str | None) -> str:
    """Absolute; in a cluster, where the same folder may lie elsewhere on another host, as seen from the project's root."""
    from agent_relay.cli.project.cluster_file import read_cluster

    folder = os.path.abspath(cwd) if cwd is not None else os.getcwd()
    if read_cluster(place.state_dir) is None:
        return folder
    inside = os.path.relpath(os.path.realpath(folder), os.path.realpath(place.root))
    return folder if inside.startswith("..") else inside


def release(
    name: AgentName,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="The reason, for the record.")] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Stop an agent started with `spawn`; returns once its program has ended."""
    place = find_place(socket, state_dir)
    outbox = own_outbox(None, place.socket)
    if outbox is not None:
        ask_through(outbox, kind="release", name=name, body=reason or "")
    else:

        async def end(relay: RelayClient) -> None:
            await relay.release(name, reason)

        _run(place, end)
    screen = Screen()
    if as_json:
        screen.json({"name": name, "released": True})
    else:
        screen.line((f"{clean_line(name)} is released", "bold green"))
    return 0


def _run(place: Place, work: Any) -> Any:
    """As an agent: a task is a message, and has a sender."""
    from agent_relay.cli.project.link import connect_as, run

    async def do() -> Any:
        relay = await connect_as(place, None, max_inflight=1)
        try:
            return await work(relay)
        finally:
            await relay.close(_CLOSE_S)

    return run(do())
