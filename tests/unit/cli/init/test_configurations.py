"""Configuration files as programs and people write them, with comments and odd formatting: added to, read by another reader, and
given back byte for byte, with the copy that was kept and without it.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_relay.cli.init.files import Shelf
from agent_relay.cli.init.plan import Plan, carry_out, make_plan
from agent_relay.cli.init.targets import CLIS

FILES = Path(__file__).parents[3] / "data" / "configurations"
# Where each lies; those that begin with ~ below the home.
PLACES = {
    "aider": (".aider.conf.yml", "CONVENTIONS.md"), "claude": (".mcp.json", "CLAUDE.md"),
    "codex": ("~/.codex/config.toml", "AGENTS.md"), "continue": ("~/.continue/config.yaml", "AGENTS.md"),
    "copilot": (".mcp.json", "AGENTS.md"), "gemini": (".gemini/settings.json", "GEMINI.md"),
    "goose": ("~/.config/goose/config.yaml", "AGENTS.md"), "kilo": (".kilo/kilo.jsonc", "AGENTS.md"),
    "opencode": ("opencode.jsonc", "AGENTS.md"), "qwen": (".qwen/settings.json", "AGENTS.md"),
    "vibe": (".vibe/config.toml", "AGENTS.md"),
}  # fmt: skip
EVERY = [(cli, newline) for cli in PLACES for newline in ("\n", "\r\n")]


class Desk:
    def __init__(self, folder: Path, cli: str, newline: str) -> None:
        self.root, self.shelf, self.cli = folder / "project", folder / "relay", cli
        self.root.mkdir()
        (folder / "home").mkdir()
        self.settings, self.instructions = (self._place(folder, name) for name in PLACES[cli])
        (source,) = (FILES / cli).glob("settings.*")
        for path, file in ((self.settings, source), (self.instructions, FILES / cli / "instructions.md")):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(re.sub(rb"\r?\n", newline.encode(), file.read_bytes()))
        self.before = self.contents()

    def _place(self, folder: Path, name: str) -> Path:
        return folder / "home" / name.removeprefix("~/") if name.startswith("~") else self.root / name

    def contents(self) -> list[bytes]:
        return [path.read_bytes() for path in (self.settings, self.instructions)]

    def run(self, *, remove: bool = False) -> Plan:
        plan = make_plan([self.cli], str(self.root), Shelf(str(self.shelf)), remove=remove)
        for step in plan.steps:
            carry_out(step, Shelf(str(self.shelf)))
        return plan


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Desk:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CODEX_HOME", "XDG_CONFIG_HOME", "CONTINUE_GLOBAL_DIR"):
        monkeypatch.delenv(name, raising=False)
    cli, newline = request.param
    return Desk(tmp_path, cli, newline)


def read(path: Path) -> Any:
    text = path.read_bytes().decode()
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if path.suffix in {".yml", ".yaml"}:
        return yaml.safe_load(text)
    kept = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda match: match[1] or " ", text, flags=re.DOTALL)
    return json.loads(re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda match: match[1] or "", kept))


def said(settings: dict[str, Any]) -> dict[str, Any]:
    """An empty object says nothing."""
    return {name: value for name, value in settings.items() if value != {}}


def take_out(settings: dict[str, Any]) -> Any:
    """Our entry, which is then gone from them."""
    for key in ("mcpServers", "mcp", "mcp_servers", "extensions"):
        servers = settings.get(key)
        if isinstance(servers, list):
            (own,) = [server for server in servers if server.get("name") == "agent-relay"]
            servers.remove(own)
            return own
        if isinstance(servers, dict):
            return servers.pop("agent-relay")
    return settings["read"].remove("CONVENTIONS.md")


def test_there_is_one_for_every_cli() -> None:
    assert set(PLACES) == set(CLIS) == {path.name for path in FILES.iterdir()}


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_ours_is_added_and_nothing_else_is_said(desk: Desk) -> None:
    before = read(desk.settings)
    assert desk.run().problems == []
    after = read(desk.settings)
    take_out(after)
    assert said(after) == said(before)
    assert desk.instructions.read_bytes().startswith(desk.before[1])
    assert desk.run().changes == []  # said again, it changes nothing


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_every_byte_is_given_back(desk: Desk) -> None:
    desk.run()
    assert all(now != then for now, then in zip(desk.contents(), desk.before, strict=True))
    desk.run(remove=True)
    assert desk.contents() == desk.before
    assert list((desk.shelf / "init").iterdir()) == []


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_every_byte_is_given_back_though_the_copy_is_lost(desk: Desk) -> None:
    desk.run()
    for path in (desk.shelf / "init").iterdir():
        path.unlink()
    desk.run(remove=True)
    assert desk.contents() == desk.before


@pytest.mark.parametrize("desk", EVERY, indirect=True)
def test_what_a_person_wrote_since_stays(desk: Desk) -> None:
    desk.run()
    for path, line in (
        (desk.settings, b"\n# mine\n" if desk.settings.suffix != ".json" else b"\n\n"),
        (desk.instructions, b"More.\n"),
    ):
        path.write_bytes(path.read_bytes() + (b"" if path.suffix == ".jsonc" else line))
    before = read(desk.settings)
    take_out(before)
    desk.run(remove=True)
    assert said(read(desk.settings)) == said(before)
    assert desk.instructions.read_bytes().endswith(b"More.\n")
    assert b"agent-relay: begin" not in desk.instructions.read_bytes()
