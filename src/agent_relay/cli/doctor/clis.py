"""The agents' CLIs: which are installed, in which version, and whether that is one the relay was tried with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.terminal.doors.codex_hooks import FLAG as HOOKS_FLAG
from agent_relay.terminal.doors.codex_hooks import are_trusted
from agent_relay.terminal.doors.versions import FLAG, SETTING, TRY, is_known
from agent_relay.terminal.profile import GENERIC, Profile, load_profiles
from agent_relay.terminal.transcripts.find import home_of

_VERSION_S = 15.0  # some of them take seconds to start
_NUMBER = re.compile(r"(?<!\d)\d{1,9}(?:\.\d{1,9})+")


def check_clis(*, tries_doors: bool) -> Iterator[Finding]:
    profiles = [profile for profile in load_profiles().values() if profile.name != GENERIC]
    with ThreadPoolExecutor(len(profiles)) as pool:
        yield from pool.map(lambda profile: check_cli(profile, tries_doors=tries_doors), profiles)


def check_cli(profile: Profile, *, tries_doors: bool = False) -> Finding:
    path = next((found for name in profile.executables if (found := shutil.which(name))), None)
    if path is None:
        return Finding(profile.name, Verdict.ABSENT, "not installed")
    version = read_version(path)
    ways = ", then ".join([*profile.doors, "typing"])
    if version is None:
        return Finding(profile.name, Verdict.NOTE, f"{path} does not say its version", f"Try `{path} --version` yourself.")
    if not is_known(version, profile.recorded):
        return _untried(profile, f"{version} at {path}", tries_doors=tries_doors)
    return Finding(profile.name, Verdict.OK, f"{version} at {path}; messages go in by {ways}{_hooks(profile)}")


def _hooks(profile: Profile) -> str:
    """Of a CLI that runs them with the person's word alone: whether it has it."""
    if profile.name != "codex" or profile.transcript is None:
        return ""
    if are_trusted(home_of(profile.transcript, os.environ)):
        return "; the relay's hooks are trusted"
    return f"; the relay's hooks are not trusted, and `wrap {HOOKS_FLAG}` asks for it where they would be used"


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


def _untried(profile: Profile, what: str, *, tries_doors: bool) -> Finding:
    tried = f"the relay was tried with {profile.recorded}" if profile.recorded else "the relay was not tried with it"
    if profile.doors and not tries_doors:
        mend = f'`wrap {FLAG}`, or `{SETTING} = "{TRY}"` in your config.toml, uses its doors all the same.'
        return Finding(profile.name, Verdict.NOTE, f"{what}; {tried}, so messages are typed", mend)
    used = f", and its doors are used all the same ({SETTING} = {TRY})" if profile.doors else ""
    return Finding(
        profile.name, Verdict.NOTE, f"{what}; {tried}{used}", "It should work; if not, `agent-relay record` shows why."
    )
