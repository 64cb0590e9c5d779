"""Databases as earlier releases left them, for tests of the upgrade: `python -m tests.data.databases` makes them.

Of each schema there are two: `closed`, by a daemon that was stopped, and `killed`, by one that was killed, so that the newest of
it is in the WAL alone. `said.json` beside them is what the release itself read from each, and what clients were told and still
owed. Those of PostgreSQL (see `postgres`) are of a killed daemon. All were made once, by the release whose schema they have, and
are never made anew: one made by today's code shows nothing.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAME = "messages.sqlite"


def unpack(which: str, directory: Path) -> Path:
    """Puts `v1-closed`, say, into the directory as a daemon expects it there; returns the database's path."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    for packed in (HERE / which).glob(f"{NAME}*.gz"):
        file = directory / packed.name.removesuffix(".gz")
        file.write_bytes(gzip.decompress(packed.read_bytes()))
        file.chmod(0o600)
    return directory / NAME


def read_said(which: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((HERE / which / "said.json").read_text())
    return said
