"""The agents' CLIs: which are installed, in which version, and whether that is one the relay was tried with."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.terminal.profile import GENERIC, Profile, load_profiles

_VERSION_S = 15.0  # some of them take seconds to start
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def check_clis() -> Iterator[Finding]:
    profiles = [profile for profile in load_profiles().values() if profile.name != GENERIC]
    with ThreadPoolExecutor(len(profiles)) as pool:
        yield from pool.map(check_cli, profiles)


def check_cli(profile: Profile) -> Finding:
    path = next((found for name in profile.executables if (found := shutil.which(name))), None)
    if path is None:
        return Finding(profile.name, Verdict.ABSENT, "not installed")
    version = read_version(path)
    ways = ", then ".join([*profile.doors, "typing"])
    if version is None:
        return Finding(profile.name, Verdict.NOTE, f"{path} does not say its version", f"Try `{path} --version` yourself.")
    if not profile.recorded or not is_near(version, profile.recorded):
        tried = f"the relay was tried with {profile.recorded}" if profile.recorded else "the relay was not tried with it"
        return Finding(
            profile.name, Verdict.NOTE, f"{version} at {path}; {tried}", "It should work; if not, `agent-relay record` shows why."
        )
    return Finding(profile.name, Verdict.OK, f"{version} at {path}; messages go in by {ways}")


def read_version(path: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - a CLI of the person's own
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_VERSION_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _NUMBER.search(done.stdout) or _NUMBER.search(done.stderr)
    return match[0] if match else None


def is_near(version: str, tried: str) -> bool:
    """The same but for the last number."""
    return version.split(".")[:2] == tried.split(".")[:2]
