"""The hooks of ours that Codex is started with: one text for all agents, run only where the person trusts it, and harmless."""

from __future__ import annotations

import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from agent_relay.terminal.doors.codex.hooks import VARIABLE, are_trusted, hook_flags, write_script
from agent_relay.terminal.doors.launch import AgentPlace
from tests.unit.terminal.doors.codex_hooked import TRUST


def commands() -> dict[str, str]:
    settings = tomllib.loads("\n".join(hook_flags()[1::2]))["hooks"]
    return {event: groups[0]["hooks"][0]["command"] for event, groups in settings.items()}


def run(event: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", commands()[event]], env={"PATH": os.environ["PATH"], **environment}, input=b"{}",
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def test_what_codex_wrote_down_when_a_person_trusted_them_is_read(tmp_path: Path) -> None:
    """Should this fail after a change of the hooks, every user is asked anew: then Codex has to be run again for its digests."""
    (tmp_path / "config.toml").write_text(TRUST)
    assert are_trusted(tmp_path)


@pytest.mark.parametrize(
    "kept",
    [
        "", "half = [", "hooks = 3", "[hooks]\nstate = []", TRUST.replace("491a", "591a"), TRUST.replace(":stop:", ":other:"),
        TRUST.replace(":0:0", ":0:1"), f"{TRUST}enabled = false\n", TRUST.rpartition("[hooks")[0],
    ],
)  # fmt: skip
def test_anything_else_is_no_trust(tmp_path: Path, kept: str) -> None:
    (tmp_path / "config.toml").write_text(kept)
    assert not are_trusted(tmp_path)


def test_no_settings_or_none_that_can_be_read_is_no_trust(tmp_path: Path) -> None:
    assert not are_trusted(tmp_path)
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    assert not are_trusted(tmp_path)
    assert not are_trusted(tmp_path / "config.toml")


def test_the_text_names_no_agent_and_no_place() -> None:
    assert hook_flags()[::2] == ["-c"] * 3
    assert set(commands()) == {"UserPromptSubmit", "PermissionRequest", "Stop"}
    for event, command in commands().items():
        assert command == f'sh -c \'if [ -f "${VARIABLE}" ]; then sh "${VARIABLE}" {event} 2>/dev/null; fi; exit 0\''


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PermissionRequest", "Stop"])
def test_it_says_nothing_and_ends_well_whatever_is_missing(tmp_path: Path, event: str) -> None:
    place = AgentPlace("Bob", str(tmp_path), "0123456789ab")
    script = Path(write_script(place, str(tmp_path / "hooks.sock")))
    (tmp_path / "codex-waiting").touch()
    assert stat.S_IMODE(script.stat().st_mode) == 0o600
    assert run(event).returncode == 0
    for named in ("", str(tmp_path / "none"), str(tmp_path), str(script)):
        done = run(event, **{VARIABLE: named})
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_script_that_fails_is_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "bad.sh").write_text("echo trouble >&2; exit 2\n")
    done = run("PermissionRequest", **{VARIABLE: str(tmp_path / "bad.sh")})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
