"""The list of commands: how to get each, its line in the list of all, and the examples that stand under its help.

Only the one that was asked for is imported. To import and build all of them takes longer than most of them run.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class CommandEntry(NamedTuple):
    load: Callable[[], Any]  # the function, or the group of some; its module is spelled out for the check of imports
    short: str
    examples: tuple[str, ...]


def _list(load: Callable[[], Any], short: str, *examples: str) -> CommandEntry:
    return CommandEntry(load, short, examples)


_ID = "msg_01KA2V8Z5T7Q4M9C3XKJ0000A1"

COMMANDS: dict[str, CommandEntry] = {
    "wrap": _list(
        lambda: import_module("agent_relay.cli.commands.wrap").wrap,
        "Run an agent's CLI under the relay.",
        "agent-relay -n Alice claude",
        "agent-relay wrap -n Bob --backend pty codex --model o5",
    ),
    "attach": _list(
        lambda: import_module("agent_relay.cli.commands.attach").attach,
        "Show a wrapped agent and type to it.",
        "agent-relay attach Alice",
    ),
    "logs": _list(
        lambda: import_module("agent_relay.cli.commands.logs").logs,
        "Show an agent's terminal output.",
        "agent-relay logs Alice",
        "agent-relay logs Alice -f",
    ),
    "pause": _list(
        lambda: import_module("agent_relay.cli.commands.control").pause,
        "Hold messages to an agent.",
        "agent-relay pause Alice",
    ),
    "resume": _list(
        lambda: import_module("agent_relay.cli.commands.control").resume,
        "Deliver messages to a paused agent again.",
        "agent-relay resume Alice",
    ),
    "interrupt": _list(
        lambda: import_module("agent_relay.cli.commands.control").interrupt,
        "Interrupt what an agent is doing.",
        "agent-relay interrupt Alice",
    ),
    "stop": _list(
        lambda: import_module("agent_relay.cli.commands.control").stop, "Stop an agent's program.", "agent-relay stop Alice"
    ),
    "input": _list(
        lambda: import_module("agent_relay.cli.commands.control").type_in,
        "Type into an agent's terminal.",
        "agent-relay input Alice 'Go on, please.'",
        "agent-relay input Alice --no-enter y",
    ),
    "spawn": _list(
        lambda: import_module("agent_relay.cli.commands.spawn").spawn,
        "Start an agent in the background.",
        "agent-relay spawn Dev claude 'Fix the tests.'",
        "agent-relay spawn Dev codex --cwd backend",
        "agent-relay spawn Dev claude --host build-1",
        "agent-relay spawn Bob gemini --acp",
    ),
    "release": _list(
        lambda: import_module("agent_relay.cli.commands.spawn").release,
        "Stop an agent started with `spawn`.",
        "agent-relay release Dev",
    ),
    "team": _list(
        lambda: import_module("agent_relay.cli.commands.team").team,
        "Start and stop a whole team from one file.",
        "agent-relay team up",
        "agent-relay team status",
        "agent-relay team logs -f",
        "agent-relay team down",
    ),
    "run": _list(
        lambda: import_module("agent_relay.cli.commands.run").run,
        "Run patterns that a file declares.",
        "agent-relay run review.yaml",
        "agent-relay run review.yaml --var cli=codex --json",
        "agent-relay run review.yaml --dry-run",
    ),
    "permissions": _list(
        lambda: import_module("agent_relay.cli.commands.permissions").permissions,
        "Show permission requests, and approve or deny them.",
        "agent-relay permissions -f",
        "agent-relay permissions approve 3f9c2a11",
    ),
    "questions": _list(
        lambda: import_module("agent_relay.cli.commands.questions").questions,
        "Show agents' questions, and answer them.",
        "agent-relay questions",
        "agent-relay questions answer 3f9c2a11 blue",
    ),
    "up": _list(
        lambda: import_module("agent_relay.cli.commands.up").up,
        "Start the daemon.",
        "agent-relay up",
        "agent-relay up --foreground --message-ttl 7d",
    ),
    "down": _list(
        lambda: import_module("agent_relay.cli.commands.down").down,
        "Stop the daemon.",
        "agent-relay down",
        "agent-relay down --all",
    ),
    "restart": _list(
        lambda: import_module("agent_relay.cli.commands.restart").restart,
        "Restart the daemon; agents keep running.",
        "agent-relay restart",
        "agent-relay restart --port 4000",
    ),
    "projects": _list(
        lambda: import_module("agent_relay.cli.commands.projects").projects,
        "List your projects and their daemons.",
        "agent-relay projects",
        "agent-relay projects --json",
    ),
    "ps": _list(
        lambda: import_module("agent_relay.cli.commands.projects").ps,
        "List the agents of all your projects.",
        "agent-relay ps",
        "agent-relay ps --all --json",
    ),
    "status": _list(
        lambda: import_module("agent_relay.cli.commands.status").status,
        "Show the daemon, its agents and its storage.",
        "agent-relay status",
        "agent-relay status --all",
        "agent-relay status --json",
    ),
    "hosts": _list(
        lambda: import_module("agent_relay.cli.commands.hosts").hosts,
        "List the hosts of the cluster.",
        "agent-relay hosts",
        "agent-relay hosts --json",
        "agent-relay hosts exclude laptop",
    ),
    "open": _list(
        lambda: import_module("agent_relay.cli.commands.open").open_page,
        "Open the dashboard in the browser.",
        "agent-relay open",
        "agent-relay open --no-browser",
        "agent-relay open --qr",
        "agent-relay open --forget",
    ),
    "agents": _list(
        lambda: import_module("agent_relay.cli.commands.agents").agents,
        "List the project's agents.",
        "agent-relay agents",
        "agent-relay agents --all",
    ),
    "who": _list(lambda: import_module("agent_relay.cli.commands.agents").who, "List connected agents.", "agent-relay who"),
    "send": _list(
        lambda: import_module("agent_relay.cli.commands.send").send,
        "Send a message and print its receipt.",
        "agent-relay send Bob 'Please review auth.py.' --from Alice",
        "agent-relay send Bob 'Are you ready?' --reply 30s",
        "agent-relay send '#general' 'The build is green.' --wait",
        "git diff | agent-relay send Bob,Carol -",
    ),
    "result": _list(
        lambda: import_module("agent_relay.cli.commands.result").result,
        "Give the result of a task.",
        "agent-relay result task-3fa9-1 'No problems found.'",
        "pytest 2>&1 | agent-relay result task-3fa9-1 -",
        "agent-relay result task-3fa9-1 --error 'The file does not exist.'",
    ),
    "join": _list(
        lambda: import_module("agent_relay.cli.commands.channels").join,
        "Join a channel.",
        "agent-relay join '#dev'",
        "agent-relay join dev --as Bob",
        "agent-relay join dev --as Bob --at-leisure",
    ),
    "leave": _list(
        lambda: import_module("agent_relay.cli.commands.channels").leave, "Leave a channel.", "agent-relay leave dev --as Bob"
    ),
    "topic": _list(
        lambda: import_module("agent_relay.cli.commands.channels").topic,
        "Show or set a channel's topic line.",
        "agent-relay topic dev",
        "agent-relay topic dev 'The rewrite of the parser: plans and reviews'",
    ),
    "channels": _list(
        lambda: import_module("agent_relay.cli.commands.channels").channels,
        "List the channels and who is in them.",
        "agent-relay channels",
        "agent-relay channels --json",
    ),
    "propose": _list(
        lambda: import_module("agent_relay.cli.commands.proposals").propose,
        "Ask agents to vote on something.",
        "agent-relay propose 'Use SQLite for the cache' --to Bob,Carol --deadline 10m",
        "agent-relay propose 'Release 2.0' --to '#dev' --quorum 60% --wait && make release",
        "agent-relay propose 'Merge it' --to Bob,Carol --weight Bob=3 --body - < summary.md",
    ),
    "vote": _list(
        lambda: import_module("agent_relay.cli.commands.proposals").vote,
        "Vote on a proposal.",
        "agent-relay vote 3f9c2a11 approve --reason 'No new service to run.'",
        "agent-relay vote 3f9c2a11 abstain --as Bob",
    ),
    "withdraw": _list(
        lambda: import_module("agent_relay.cli.commands.proposals").withdraw,
        "Withdraw a proposal.",
        "agent-relay withdraw 3f9c2a11 --reason 'It is solved.'",
    ),
    "proposals": _list(
        lambda: import_module("agent_relay.cli.commands.proposals").proposals,
        "List proposals and their votes.",
        "agent-relay proposals",
        "agent-relay proposals --all --json",
        "agent-relay proposals 3f9c2a11",
    ),
    "inbox": _list(
        lambda: import_module("agent_relay.cli.commands.inbox").inbox,
        "Receive an agent's waiting messages.",
        "agent-relay inbox --as Bob",
        "agent-relay inbox --as Bob --peek",
        "agent-relay inbox --follow --json",
    ),
    "read": _list(
        lambda: import_module("agent_relay.cli.commands.history").read, "Show one message in full.", f"agent-relay read {_ID}"
    ),
    "history": _list(
        lambda: import_module("agent_relay.cli.commands.history").history,
        "Show and search past messages.",
        "agent-relay history --with Bob --since 1h",
        "agent-relay history --to '#general' -f",
        "agent-relay history --search 'auth token' --json",
    ),
    "explain": _list(
        lambda: import_module("agent_relay.cli.commands.explain").explain,
        "Show what happened to a message.",
        f"agent-relay explain {_ID}",
    ),
    "dead-letters": _list(
        lambda: import_module("agent_relay.cli.commands.dead_letters").dead_letters,
        "Show undelivered messages, and send them again.",
        "agent-relay dead-letters",
        "agent-relay dead-letters retry --all",
    ),
    "storage": _list(
        lambda: import_module("agent_relay.cli.commands.storage").storage,
        "Copy messages between SQLite and PostgreSQL.",
        "agent-relay storage copy --from sqlite --to postgres",
    ),
    "cluster": _list(
        lambda: import_module("agent_relay.cli.commands.cluster").cluster,
        "Mend the log that a project's hosts share.",
        "agent-relay cluster repair",
        "agent-relay cluster repair --yes",
    ),
    "events": _list(
        lambda: import_module("agent_relay.cli.commands.events").events,
        "Show events, live or past.",
        "agent-relay events -f",
        "agent-relay events --types permission.requested,item.* --agent Alice --since 1h",
        "agent-relay events --since 1042 -f --json >> events.jsonl",
        "agent-relay events --schema events > events.schema.json",
    ),
    "rm": _list(
        lambda: import_module("agent_relay.cli.commands.rm").rm,
        "Remove offline agents from the lists.",
        "agent-relay rm Alice",
        "agent-relay rm Alice Bob --yes",
    ),
    "prune": _list(
        lambda: import_module("agent_relay.cli.commands.rm").prune,
        "Remove agents that have long been offline.",
        "agent-relay prune --dry-run",
        "agent-relay prune --older-than 30d",
    ),
    "forget": _list(
        lambda: import_module("agent_relay.cli.commands.forget").forget,
        "Erase everything kept about an agent.",
        "agent-relay forget Alice",
        "agent-relay forget Alice --yes --json",
    ),
    "export": _list(
        lambda: import_module("agent_relay.cli.commands.export").export,
        "Write everything kept about an agent to a file.",
        "agent-relay export Alice",
        "agent-relay export Alice --output - | jq -c 'select(.kind == \"message\")'",
    ),
    "costs": _list(
        lambda: import_module("agent_relay.cli.commands.costs").costs,
        "Show token usage and cost.",
        "agent-relay costs",
        "agent-relay costs --since 24h --agent Alice",
        "agent-relay costs --json",
    ),
    "record": _list(
        lambda: import_module("agent_relay.cli.commands.record").record,
        "Record a running agent's terminal.",
        "agent-relay record Alice",
        "agent-relay record Alice -o bug.cast --seconds 60",
    ),
    "replay": _list(
        lambda: import_module("agent_relay.cli.commands.replay").replay,
        "Show what the relay would do with a recording.",
        "agent-relay replay session.cast",
        "agent-relay replay session.jsonl --cli claude --json",
    ),
    "profile": _list(
        lambda: import_module("agent_relay.cli.commands.profile").profile,
        "Create and test profiles of programs.",
        "agent-relay profile new chatty -- chatty --model x",
        "agent-relay profile test",
        "agent-relay profile list",
    ),
    "doctor": _list(
        lambda: import_module("agent_relay.cli.commands.doctor").doctor,
        "Check the setup and show how to fix problems.",
        "agent-relay doctor",
        "agent-relay doctor --json",
    ),
    "demo": _list(
        lambda: import_module("agent_relay.cli.commands.demo").demo,
        "Watch a conversation survive a crash.",
        "agent-relay demo",
    ),
    "arc": _list(
        lambda: import_module("agent_relay.cli.commands.arc").arc,
        "Agents over WebSockets: register, talk, check a relay.",
        "agent-relay arc register rawk-042",
        "agent-relay arc listen",
        "agent-relay arc conformance",
    ),
    "bridge": _list(
        lambda: import_module("agent_relay.cli.commands.bridge").bridge,
        "Connect agents to a remote ARC relay.",
        "agent-relay bridge --url wss://relay.example.com/arc --map Alice=alice-acme --peer bob-7",
        "agent-relay bridge --config bridge.toml",
    ),
    "mcp": _list(
        lambda: import_module("agent_relay.cli.commands.mcp").mcp,
        "Serve the relay as MCP tools for an agent.",
        "agent-relay mcp",
        "agent-relay init claude",
    ),
    "acp": _list(
        lambda: import_module("agent_relay.cli.commands.acp").acp,
        "Bring an agent into an editor that speaks ACP.",
        "agent-relay acp Bob",
    ),
    "init": _list(
        lambda: import_module("agent_relay.cli.commands.init").init,
        "Set CLIs up for the relay's tools, or undo it.",
        "agent-relay init",
        "agent-relay init claude codex --dry-run",
        "agent-relay init --remove",
    ),
    "openapi": _list(
        lambda: import_module("agent_relay.cli.commands.openapi").openapi,
        "Print the OpenAPI description of the HTTP API.",
        "agent-relay openapi > openapi.json",
    ),
    "version": _list(lambda: import_module("agent_relay.cli.commands.about").version, "Show the version.", "agent-relay version"),
    "completion": _list(
        lambda: import_module("agent_relay.cli.commands.about").completion,
        "Print a completion script for your shell.",
        'eval "$(agent-relay completion bash)"',
        "agent-relay completion fish | source",
    ),
}
