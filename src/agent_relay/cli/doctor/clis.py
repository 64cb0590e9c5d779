"""The agents' CLIs, which are installed and which ways lead into them, and the user's own profiles of programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.wrapper.profile_shelf import load_shelf
from agent_relay.sdk.locate import Place
from agent_relay.terminal.doors.codex.hooks import FLAG as HOOKS_FLAG
from agent_relay.terminal.doors.codex.hooks import are_trusted
from agent_relay.terminal.doors.versions import KNOWN, OFF, PROBE, SETTING, Versions, ask_version, objection_to_start
from agent_relay.terminal.output.transcripts.find import home_of
from agent_relay.terminal.profiles.profile import GENERIC, Profile, load_profiles
from agent_relay.terminal.profiles.tried_releases import describe_tried, whole_releases


def check_clis(doors: str) -> Iterator[Finding]:
    """`doors`: the setting."""
    profiles = [profile for profile in load_profiles().values() if profile.name != GENERIC]
    with ThreadPoolExecutor(len(profiles)) as pool:
        yield from pool.map(lambda profile: check_cli(profile, doors), profiles)


def check_cli(profile: Profile, doors: str = PROBE) -> Finding:
    path = next((found for name in profile.executables if (found := shutil.which(name))), None)
    if path is None:
        return Finding(profile.name, Verdict.ABSENT, "not installed")
    version = ask_version(path)
    if not version:
        return Finding(profile.name, Verdict.NOTE, f"{path} does not report its version", f"Try `{path} --version` yourself.")
    tried = describe_tried(profile.name, version)
    what = f"{version} at {path}" + (f" ({tried})" if tried else "")
    if not profile.doors:
        return Finding(profile.name, Verdict.OK, f"{what}; messages are typed")
    if doors == OFF:
        mend = f"Leave out `{SETTING} = {OFF}` to use its doors."
        return Finding(profile.name, Verdict.NOTE, f"{what}; messages are typed, because doors are off", mend)
    whole = whole_releases(profile.name)
    versions = Versions(profile.title, profile.recorded, doors == KNOWN, whole)
    objection, mend = versions.objection(version, whole.get(version, ""))
    if not objection:
        objection, mend = objection_to_start(profile.name, version)
    if objection:
        return Finding(profile.name, Verdict.NOTE, f"{what}; messages are typed: {objection}", mend)
    ways = ", then ".join([*profile.doors, "typing"])
    tested = (
        ""
        if versions.is_tested(version, whole.get(version, ""))
        else f"; {profile.recorded} is the tested version, so doors are on trial at first"
    )
    return Finding(
        profile.name, Verdict.OK, f"{what}; messages go in by {ways}, whichever passes its probe{tested}{_hooks(profile)}"
    )


def _hooks(profile: Profile) -> str:
    """Of a CLI that runs them with the person's word alone: whether it has it."""
    if profile.name != "codex" or profile.transcript is None:
        return ""
    if are_trusted(home_of(profile.transcript, os.environ)):
        return "; the relay's hooks are approved"
    return f"; the relay's hooks are not approved: `wrap {HOOKS_FLAG}` asks for it if they would be used"


def check_profiles(place: Place, environ: Mapping[str, str]) -> Iterator[Finding]:
    shelf = load_shelf(place.root, place.home, environ)
    for text in shelf.broken.values():
        yield Finding("profile", Verdict.BAD, text, "Fix the file, then run: agent-relay profile test")
    for note in shelf.notes:
        if note not in shelf.broken.values():
            yield Finding("profile", Verdict.NOTE, note)
