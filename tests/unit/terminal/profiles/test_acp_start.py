"""How programs are started such that they speak the Agent Client Protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.terminal.profiles.acp_start import acp_programs, acp_words
from agent_relay.terminal.profiles.profile import ProfileError, load_profiles, parse_profile, profile_for

PROFILES = load_profiles()


def words(*argv: str, path: str = "") -> list[str]:
    return acp_words(argv, PROFILES, profile_for(argv[0], PROFILES), path)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["gemini"], ["gemini", "--acp"]),
        (["/opt/bin/gemini", "--model", "x"], ["/opt/bin/gemini", "--acp", "--model", "x"]),
        (["gemini", "--acp"], ["gemini", "--acp"]),
        (["opencode"], ["opencode", "acp"]),
        (["qwen"], ["qwen", "--acp"]),
        (["kimi"], ["kimi", "acp"]),
        (["vibe-acp"], ["vibe-acp"]),
    ],
)
def test_a_program_gets_its_own_words_once(argv: list[str], expected: list[str]) -> None:
    assert words(*argv) == expected


def test_one_that_nobody_has_described_is_told_with_those_that_are() -> None:
    with pytest.raises(ProfileError, match=r"how aider is started .*claude, .*gemini.*\[acp\.aider\]"):
        words("aider")


def test_a_program_with_an_adapter_is_run_by_it(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="not installed: npm install -g @agentclientprotocol/claude-agent-acp"):
        words("claude")
    adapter = tmp_path / "claude-agent-acp"
    adapter.write_text("#!/bin/sh\n")
    adapter.chmod(0o755)
    assert words("claude", path=str(tmp_path)) == ["claude-agent-acp"]
    with pytest.raises(ProfileError, match="leave out --model opus"):
        words("claude", "--model", "opus", path=str(tmp_path))


def test_a_profile_of_ones_own_describes_another_one() -> None:
    own = parse_profile('name = "my"\ntitle = "My"\ncomposer.row = "^> "\n[acp.my]\nwords = ["talk"]\n', "my.toml", is_own=True)
    profiles = {"my": own, **PROFILES}
    assert acp_words(["my"], profiles, own, "") == ["my", "talk"]
    assert "my" in acp_programs(profiles)
    with pytest.raises(ProfileError, match=r"my\.toml.*allowed: adapter, install, words"):
        parse_profile('name = "my"\ntitle = "My"\ncomposer.row = "^> "\n[acp.my]\nflags = ["talk"]\n', "my.toml")
