"""Names of tools: the CLIs' own are known, and nothing that only looks like one is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from agent_relay.protocol import tool_names
from agent_relay.protocol.tool_names import kind_of

PROFILES = Path(tool_names.__file__).parents[1] / "terminal" / "profiles"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Bash", "bash"), ("run_shell_command", "bash"), ("shell", "bash"), ("commandExecution", "bash"), ("exec_command",
        "bash"),
        ("Read", "read"), ("ReadFile", "read"), ("read_many_files", "read"), ("Glob", "glob"), ("Grep", "grep"),
        ("search_file_content", "grep"), ("Edit", "edit"), ("apply_patch", "edit"), ("fileChange", "edit"), ("WriteFile",
        "write"),
        ("WebFetch", "fetch"), ("google_web_search", "search"), ("LS", "list"), ("PowerShell", "powershell"),
    ],
)  # fmt: skip
def test_the_names_of_the_clis_are_known(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    "name",
    [
        "", " ", " read", "read ", "read\n", "\tread", "re ad", "r\u0435ad", "ｒｅａｄ", "reаd", "g_rep", "mcp__x__read",
        "read.x",
        "Read(", "gre\u200bp", "Noteboo\u212aRead", "read\0", "bash -c", "x.read", "server_read", "ReadMcpResource",
    ],
)  # fmt: skip
def test_a_name_that_only_resembles_one_is_another_name(name: str) -> None:
    assert kind_of(name) == name


@pytest.mark.parametrize(
    ("field", "kind"), [("commands", {"bash", "powershell"}), ("reads", {"read"}), ("writes", {"write"}), ("edits", {"edit"})]
)
def test_every_tool_that_a_profile_names_is_known_as_what_it_is(field: str, kind: set[str]) -> None:
    profiles = [tomllib.loads(path.read_text("utf-8")) for path in PROFILES.glob("*.toml")]
    names = [name for profile in profiles for name in profile.get("transcript", {}).get(field, [])]
    assert names
    assert {kind_of(name) for name in names} <= kind
