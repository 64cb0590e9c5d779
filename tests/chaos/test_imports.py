"""Chaos shares no code with what it checks: of the project it imports the launcher of daemons, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
CLUSTER = HERE.parent / "cluster"
SUPPORT = HERE.parent / "support"
ALLOWED = {"agent_relay.testing.daemon"}


def find_forbidden(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=module, level=0):
                modules = [module or ""]
            case ast.Call(func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module")):
                modules = ["agent_relay by name"]
            case _:
                continue
        yield from (name for name in modules if name.partition(" ")[0].partition(".")[0] == "agent_relay" and name not in ALLOWED)


def files_of_several_hosts() -> list[Path]:
    """But for what runs in the daemon's process: a planted fault is planted there."""
    chaos = [path for path in CLUSTER.joinpath("chaos").glob("*.py") if path.name != "planted.py"]
    return [*chaos, CLUSTER / "machines.py", SUPPORT / "nats_servers.py", SUPPORT / "networks.py", SUPPORT / "postgres_server.py"]


def test_chaos_speaks_for_itself() -> None:
    files = sorted([*HERE.glob("*.py"), *HERE.with_name("faults").glob("__init__.py"), *files_of_several_hosts()])
    assert {"agent.py", "wire.py", "rules.py", "machines.py"} <= {path.name for path in files}
    assert {path.name: found for path in files if (found := list(find_forbidden(path.read_text())))} == {}


def test_a_forbidden_import_is_caught() -> None:
    planted = "def f():\n    from agent_relay.protocol.framing import FrameDecoder\nimport agent_relay.sdk\nimport_module('x')\n"
    assert sorted(find_forbidden(planted)) == ["agent_relay by name", "agent_relay.protocol.framing", "agent_relay.sdk"]
    assert list(find_forbidden("from agent_relay.testing.daemon import DaemonProcess\nimport json\n")) == []
