"""How much harm a request could do."""

from __future__ import annotations

import pytest

from agent_relay.core.risk import Risk, assess


@pytest.mark.parametrize(
    ("kind", "command", "file_path", "risk"),
    [
        ("bash", "make test", None, "medium"),
        ("bash", "make test && make install", None, "high"),
        ("bash", "sudo make install", None, "high"),
        ("bash", "git push origin main", None, "high"),
        ("bash", "rm x", None, "critical"),
        ("bash", "psql -c 'DROP TABLE x'", None, "critical"),
        ("powershell", "x; DELETE y", None, "critical"),
        ("bash", "", None, "high"),
        ("bash", None, None, "high"),
        ("read", None, "src/x.py", "low"),
        ("grep", None, None, "low"),
        ("read", None, "/somewhere/.ssh/id_rsa", "medium"),
        ("edit", None, "src/x.py", "medium"),
        ("edit", None, "src/../../x", "high"),
        ("write", None, "/etc/hosts", "high"),
        ("write", None, "etc/hosts", "medium"),
        ("write", None, "//etc/hosts", "high"),
        ("write", None, ".env.local", "high"),
        ("write", None, ".git/hooks/pre-commit", "high"),
        ("write", None, "~/x", "high"),
        ("edit", None, None, "high"),
        ("fetch", None, None, "medium"),
        ("something of an MCP server", None, None, "medium"),
        ("something of an MCP server", "rm x", None, "critical"),
        ("something of an MCP server", "curl x", None, "high"),
        ("read", None, "SRC/.Env", "medium"),
        ("write", None, "tls/server.key", "high"),
        ("", None, None, "medium"),
    ],
)
def test_risk(kind: str, command: str | None, file_path: str | None, risk: str) -> None:
    assert assess(kind, command, file_path) is Risk(risk)
