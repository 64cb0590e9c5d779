"""Plays the scenes with every release that was installed: `python -m tests.real_clis.try_releases FOLDER [NAME...]`.

What is found is written down after each release, for `doctor` and for the table in docs/real-clis.md: a run that is interrupted
has said what it found. A release that this run does not play keeps what was found before, with its date.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from agent_relay.terminal.profiles.tried_releases import Tried, TriedRelease, decode_tried, encode_tried
from scripts.cli_releases import RELEASES
from tests.real_clis import release_table
from tests.real_clis.offline import is_offline
from tests.real_clis.release_scenes import Play


def note(cli: str, version: str, found: TriedRelease) -> Tried:
    tried = decode_tried(release_table.DATA.read_bytes())
    tried.setdefault(cli, {})[version] = found
    release_table.DATA.write_bytes(encode_tried(tried))
    release_table.write(tried)
    return tried


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def try_releases(folder: Path, names: list[str]) -> bool:
    """True: all of them did all of it."""
    listed: Mapping[str, Mapping[str, str]] = json.loads((folder / RELEASES).read_text("utf-8"))
    date, went_well = time.strftime("%Y-%m-%d", time.gmtime()), True
    for cli in names or listed:
        for version, trouble in listed.get(cli, {}).items():
            if trouble:
                found = TriedRelease(date, reason=trouble.partition(" It said")[0])
            else:
                found = Play(folder, cli, version, date, _say).run()
            note(cli, version, found)
            went_well &= found.is_whole
    return went_well


def main(words: list[str]) -> int:
    if not words:
        _say("usage: python -m tests.real_clis.try_releases FOLDER [NAME...]")
        return 2
    if not is_offline():
        _say("try_releases: it is run by `make test-real-clis VERSIONS=…`, which takes the network away.")
        return 1
    return 0 if try_releases(Path(words[0]).resolve(), words[1:]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
