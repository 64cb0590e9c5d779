"""Installs the newest releases of the real CLIs: `scripts/cli_releases.py FOLDER COUNT [NAME...]`, COUNT of each.

Every release gets a folder of its own, FOLDER/VERSION/NAME. FOLDER/releases.json says which there are: the newest first, and why
one could not be installed. What is known of a release stays there: the second call only asks for new ones.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:  # run as a file
    sys.path.insert(0, str(ROOT))

from scripts.real_clis import MANIFEST, Cli, InstallFailed, find_python, install, is_installed, read_manifest, run  # noqa: E402

RELEASES = "releases.json"
_RELEASE = re.compile(r"\d+(?:\.\d+)+")  # nightlies, previews and builds for one machine have more in their names


def newest(versions: list[str], count: int) -> list[str]:
    """The newest releases, by their numbers, the newest first."""
    released = {version for version in versions if _RELEASE.fullmatch(version)}
    return sorted(released, key=lambda version: [int(part) for part in version.split(".")], reverse=True)[:count]


def list_versions(cli: Cli) -> list[str]:
    """All that the registry has, in any order."""
    if cli.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise InstallFailed(f"{cli.name} needs npm. Install Node.js, which has it, then run this again.")
        said = run([npm, "view", cli.package, "versions", "--json"], f"npm has no {cli.package}", ROOT)
        found = json.loads(said)
        return [str(version) for version in (found if isinstance(found, list) else [found])]
    words = [find_python(cli), "-m", "pip", "index", "versions", cli.package, "--disable-pip-version-check"]
    said = run(words, f"pip has no {cli.package}", ROOT)
    listed = re.search(r"Available versions: (.*)", said)
    return [version.strip() for version in listed[1].split(",")] if listed else []


def install_releases(folder: Path, count: int, names: list[str]) -> dict[str, dict[str, str]]:
    """By CLI and version: the reason why it could not be installed, or nothing."""
    manifest = read_manifest()
    found: dict[str, dict[str, str]] = {}
    for name in names:
        cli = manifest[name]
        found[name] = {}
        for version in newest(list_versions(cli), count):
            one = cli._replace(version=version)
            found[name][version] = ""
            if is_installed(one, folder / version):
                continue
            sys.stderr.write(f"installing {name} {version} …\n")
            try:
                install(one, folder / version)
            except InstallFailed as error:
                sys.stderr.write(f"{error}\n")
                found[name][version] = str(error)
    return found


def main(words: list[str]) -> int:
    manifest = read_manifest()
    if len(words) < 2 or not words[1].isdigit():
        sys.stderr.write("usage: scripts/cli_releases.py FOLDER COUNT [NAME...]\n")
        return 2
    folder, names = Path(words[0]).resolve(), words[2:] or list(manifest)
    if unknown := [name for name in names if name not in manifest]:
        sys.stderr.write(f"There is no {unknown[0]!r} in {MANIFEST.name}; there are {', '.join(manifest)}.\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    try:
        found = install_releases(folder, int(words[1]), names)
    except InstallFailed as error:
        sys.stderr.write(f"cli_releases: {error}\n")
        return 1
    (folder / RELEASES).write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
