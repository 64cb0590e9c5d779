"""`doctor`: looks at everything the relay needs, and says how to mend what is wrong."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place, read_doors
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.cli.doctor.findings import Finding
    from agent_relay.sdk.locate import Place

_SIGNS = {"ok": ("✓", "green"), "note": ("!", "yellow"), "bad": ("✗", "bold red"), "absent": ("–", "dim")}


def doctor(as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Check everything the relay needs: tmux, terminals, the directories it writes to, the daemon, its cluster and the CLIs.

    Runs a small program in each backend and writes a test file in each directory, then cleans up. Exits with status 1 if
    something does not work.
    """
    from agent_relay.cli.doctor.clis import check_clis, check_profiles
    from agent_relay.cli.doctor.cluster import check_cluster
    from agent_relay.cli.doctor.findings import Verdict
    from agent_relay.cli.doctor.machine import check_machine
    from agent_relay.cli.doctor.relay import check_relay

    place = find_place(socket, state_dir)
    screen = Screen()
    found: list[Finding] = []
    checks = (
        check_machine(place, os.environ), check_relay(place), check_cluster(place), check_profiles(place, os.environ),
        check_clis(_read_doors(place)),
    )  # fmt: skip
    for check in checks:
        for finding in check:
            found.append(finding)
            if not as_json:
                _show(screen, finding)
    is_bad = any(finding.verdict is Verdict.BAD for finding in found)
    if as_json:
        screen.json({"ok": not is_bad, "findings": msgspec.to_builtins(found)})
    return 1 if is_bad else 0


def _read_doors(place: Place) -> str:
    try:
        return read_doors(place)
    except Failure:  # settings that cannot be read are no reason to look at nothing
        return "probe"


def _show(screen: Screen, finding: Finding) -> None:
    sign, style = _SIGNS[finding.verdict.value]
    screen.line((sign, style), "  ", (f"{clean_line(finding.about):<10}", "bold"), clean_line(finding.text))
    if finding.mend:
        screen.line(("             → ", "dim"), clean_line(finding.mend))
    screen.flush()
