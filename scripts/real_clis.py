"""Installs the real CLIs of tests/real_clis/clis.toml, each in a folder of its own: `scripts/real_clis.py FOLDER [NAME...]`.

The second call costs nothing: a stamp in each folder says which version is in it, and is written last. Where packages come
from is the business of npm and pip.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

MANIFEST = Path(__file__).parents[1] / "tests" / "real_clis" / "clis.toml"
OLDEST_NODE = 20  # what the four npm packages ask for
INSTALL_DEADLINE_S = 1200
ANSWER_DEADLINE_S = 120
STAMP = "installed-version"


class Cli(NamedTuple):
    name: str
    registry: str
    package: str
    version: str
    program: str
    oldest_python: str = ""
    newest_python: str = ""
    is_tested: bool = True  # by every scene; otherwise only by those of `make test-real-clis VERSIONS=…`

    def programs(self, folder: Path) -> Path:
        """The folder of its commands, below the folder of all CLIs."""
        return folder / self.name / ("node_modules/.bin" if self.registry == "npm" else "bin")


class InstallFailed(Exception):  # noqa: N818 - named by the condition
    """The text says what to do."""


def read_manifest(path: Path = MANIFEST) -> dict[str, Cli]:
    return {name: Cli(name, **fields) for name, fields in tomllib.loads(path.read_text("utf-8")).items()}


def is_installed(cli: Cli, folder: Path) -> bool:
    stamp = folder / cli.name / STAMP
    return stamp.exists() and stamp.read_text("utf-8") == cli.version and (cli.programs(folder) / cli.program).exists()


def install(cli: Cli, folder: Path) -> None:
    own = folder / cli.name
    if own.exists():
        shutil.rmtree(own)  # another version, or one that was left half made
    own.mkdir(parents=True)
    if cli.registry == "npm":
        _install_with_npm(cli, own)
    else:
        _install_with_pip(cli, own)
    _check_version(cli, folder)
    (own / STAMP).write_text(cli.version, "utf-8")


def _install_with_npm(cli: Cli, own: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise InstallFailed(f"{cli.name} needs npm. Install Node.js {OLDEST_NODE} or newer, which has it, then run this again.")
    node = run(["node", "--version"], "node does not run", own).strip().lstrip("v")
    if int(node.partition(".")[0]) < OLDEST_NODE:
        raise InstallFailed(f"Node.js is {node}; {cli.name} needs {OLDEST_NODE} or newer. Install that, then run this again.")
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    words = [npm, "install", "--prefix", str(own), *quiet, f"{cli.package}@{cli.version}"]
    run(words, f"npm could not install {cli.package}@{cli.version}; look at `npm config get registry` and the network", own)


def _install_with_pip(cli: Cli, own: Path) -> None:
    python = find_python(cli)
    run([python, "-m", "venv", str(own)], f"{python} could not make an environment; on Debian install python3-venv", own)
    words = [str(own / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    what = f"{cli.package}=={cli.version}"
    run([*words, what], f"pip could not install {what}; look at `pip config list` and the network", own)


def find_python(cli: Cli) -> str:
    oldest, newest = (int(version.partition(".")[2]) for version in (cli.oldest_python, cli.newest_python))
    if oldest <= sys.version_info.minor <= newest:
        return sys.executable
    for minor in range(newest, oldest - 1, -1):
        found = shutil.which(f"python3.{minor}")
        # A shim on PATH may stand for a version that is not there: it counts once it has run.
        if found is not None and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:  # noqa: S603
            return found
    raise InstallFailed(
        f"{cli.name} {cli.version} runs with Python {cli.oldest_python} to {cli.newest_python}, and none of them is here. "
        f"Install python{cli.newest_python}, then run this again."
    )


def _check_version(cli: Cli, folder: Path) -> None:
    program = cli.programs(folder) / cli.program
    said = run([str(program), "--version"], f"{cli.name} was installed and does not run", folder)
    if cli.version not in said:
        raise InstallFailed(
            f"{cli.name} says it is {said.strip()!r}, not {cli.version}: remove {folder / cli.name}, run this again."
        )


def run(words: list[str], trouble: str, cwd: Path) -> str:
    deadline_s = ANSWER_DEADLINE_S if words[-1] == "--version" else INSTALL_DEADLINE_S
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=deadline_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallFailed(f"{trouble} ({error}).") from None
    if done.returncode:
        raise InstallFailed(f"{trouble}. It said:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout or done.stderr  # some say their version there


def main(words: list[str]) -> int:
    if not words:
        sys.stderr.write("usage: scripts/real_clis.py FOLDER [NAME...]\n")
        return 2
    folder, manifest = Path(words[0]).resolve(), read_manifest()
    try:
        for name in words[1:] or [name for name, cli in manifest.items() if cli.is_tested]:
            if name not in manifest:
                raise InstallFailed(f"There is no {name!r} in {MANIFEST.name}; there are {', '.join(manifest)}.")
            cli = manifest[name]
            if not is_installed(cli, folder):
                sys.stderr.write(f"installing {cli.name} {cli.version} …\n")
                install(cli, folder)
    except InstallFailed as error:
        sys.stderr.write(f"real_clis: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
