"""The words that start a program such that it speaks the Agent Client Protocol, as the profiles say."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from agent_relay.terminal.profiles.profile import GENERIC, AcpStart, Profile, ProfileError


def acp_words(argv: Sequence[str], profiles: Mapping[str, Profile], profile: Profile, path: str | None) -> list[str]:
    """`argv`, which names a program of this profile, with what it takes. `path`: where programs are looked for. Raises
    ProfileError."""
    program, *rest = argv
    name = os.path.basename(program)
    start = profile.acp.get(name) or profiles[GENERIC].acp.get(name)
    if start is None:
        known = ", ".join(sorted(acp_programs(profiles)))
        raise ProfileError(
            f"The relay does not know how {name} is started for the Agent Client Protocol. It does for: {known}. For another "
            f'program, describe it in a profile: [acp.{name}] with words = ["--acp"] (docs/profiles.md).'
        )
    if not start.adapter:
        missing = [word for word in start.words if word not in rest]
        return [program, *missing, *rest]
    if rest:
        raise ProfileError(
            f"{name} speaks the Agent Client Protocol by the adapter {start.adapter}, which does not know options of {name}: "
            f"leave out {' '.join(rest)}."
        )
    if shutil.which(start.adapter, path=path) is None:
        raise ProfileError(f"{name} needs the adapter {start.adapter}, which is not installed: {start.install}")
    return [start.adapter, *start.words]


def acp_programs(profiles: Mapping[str, Profile]) -> dict[str, AcpStart]:
    return {name: start for profile in profiles.values() for name, start in profile.acp.items()}
