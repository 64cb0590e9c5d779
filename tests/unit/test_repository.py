"""The repository as a whole: nothing huge, nothing of one machine, no dead link, no forgotten changelog."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.version import __version__

ROOT = Path(__file__).parents[2]
LARGEST_BYTES = 1024 * 1024

# Where packages come from is the business of the machine that installs them, so no address of a registry is written here.
REGISTRIES = re.compile(
    r"\b(?:(?:test\.|upload\.)?py[p]i\.(?:org|python\.org)|files\.python[h]osted\.org|registry\.npm[j]s\.org|registry\.yarn[p]kg\.com"
    r"|conda\.anacon[d]a\.org|proxy\.gol[a]ng\.org|ind[e]x\.crates\.io)\b|(?<![a-z])ind[e]x[-_]url\b",
    re.IGNORECASE,
)
HOMES = re.compile(r"(?<![\w.~$}/-])(?:/home/[a-z_][\w.-]*|/Users/[A-Za-z][\w.-]*|/roo[t]/)")

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)


def repository_files(root: Path = ROOT) -> list[Path]:
    """What git has or would take; every file, where there is no git to ask."""
    # A checkout may belong to another user; git then refuses to read it unless told that this is meant.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True, env=_plain_git_environment()).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return sorted(_walk(root))
    paths = (root / os.fsdecode(name) for name in listed.split(b"\0") if name)
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def _plain_git_environment() -> dict[str, str]:
    """Without the variables a git hook sets: they would point git at another repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in {".git", ".venv", "__pycache__"} and not name.endswith("_cache")]
        yield from (Path(folder, name) for name in files)


def text_of(path: Path) -> str | None:
    """The file's text; None for a binary one."""
    content = path.read_bytes()
    return None if b"\0" in content[:8192] else content.decode("utf-8", "replace")


def find_places(pattern: re.Pattern[str], files: list[Path], root: Path = ROOT) -> list[str]:
    found = []
    for path in files:
        for number, line in enumerate((text_of(path) or "").splitlines(), 1):
            if match := pattern.search(line):
                found.append(f"{path.relative_to(root)}:{number}: {match.group()}")
    return found


def dead_links(page: Path) -> list[str]:
    """Links from a page to files that do not exist, or to headings they do not have."""
    dead = []
    for target in _LINK.findall(_CODE.sub("", _FENCE.sub("", page.read_text("utf-8")))):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue  # another site, whose weather is no business of a test
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            dead.append(target)
    return dead


def anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(_FENCE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-") for heading in headings}


# --- the rules ------------------------------------------------------------------------------------------------------


def test_the_rules_look_at_the_repository() -> None:
    names = {str(path.relative_to(ROOT)) for path in repository_files()}
    assert {"README.md", "pyproject.toml", "src/agent_relay/version.py", ".ci/run"} <= names
    assert not [name for name in names if name.startswith((".venv/", ".git/"))]


def test_no_file_is_huge() -> None:
    sizes = {str(path.relative_to(ROOT)): path.stat().st_size for path in repository_files()}
    assert {name: size for name, size in sizes.items() if size > LARGEST_BYTES} == {}


def test_no_registry_is_named() -> None:
    assert find_places(REGISTRIES, repository_files()) == []


def test_no_home_of_anybody_is_named() -> None:
    assert find_places(HOMES, repository_files()) == []


def test_every_link_between_our_pages_leads_somewhere() -> None:
    pages = [path for path in repository_files() if path.suffix == ".md"]
    assert {str(page.relative_to(ROOT)): dead_links(page) for page in pages if dead_links(page)} == {}


def test_the_changelog_knows_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", changelog, re.MULTILINE)


def test_every_version_of_the_environment_is_pinned() -> None:
    """Names and versions only: no addresses, no paths, no ranges."""
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line)] == []
    assert lines == sorted(lines, key=str.upper)
    pinned = {line.partition("==")[0].lower() for line in lines}
    assert {"msgspec", "uvloop", "pytest", "mypy", "ruff", "hatchling"} <= pinned


@pytest.mark.parametrize("name", [".ci/run", "scripts/setup", "scripts/constraints"])
def test_scripts_can_be_run(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / name)], check=True)


# --- and they bite --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "pip install --ind" + "ex-url https://mirror.example/simple",
        "https://py" + "pi.org/simple",
        "see https://files.python" + "hosted.org/packages/x",
        '"resolved": "https://registry.npm' + 'js.org/x"',
        "PIP_IND" + "EX_URL=x",
    ],
)
def test_a_registry_is_caught(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.txt").write_text(f"first\n{line}\n")
    assert len(find_places(REGISTRIES, [tmp_path / "a.txt"], tmp_path)) == 1


@pytest.mark.parametrize("line", ["path = /ho" + "me/alice/x", '"/Us' + 'ers/Bob"', "cd /ro" + "ot/work"])
def test_a_home_is_caught(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.txt").write_text(line)
    assert len(find_places(HOMES, [tmp_path / "a.txt"], tmp_path)) == 1


@pytest.mark.parametrize("line", ["~/home/x", "project/root/x", "$TMP/root/", "/homestead", "the /home directory"])
def test_what_only_looks_like_a_home_is_not(line: str) -> None:
    assert not HOMES.search(line)


def test_a_dead_link_is_caught(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Other page\n\n## The `walk`, again\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](missing.md) [c](other.md#the-walk-again) [d](other.md#gone) [e](#here) [f](#away)\n"
        "[g](https://example.org/missing) `[h](code.md)`\n```\n[i](fence.md)\n```\n"
    )
    assert dead_links(page) == ["missing.md", "other.md#gone", "#away"]


def test_files_are_found_without_git_too(tmp_path: Path) -> None:
    for name in ("a.py", "b/c.md", ".venv/x.py", "b/__pycache__/d.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert [str(path.relative_to(tmp_path)) for path in repository_files(tmp_path)] == ["a.py", "b/c.md"]


def test_binary_files_are_not_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0/ho" + b"me/alice")
    assert find_places(HOMES, [tmp_path / "a.bin"], tmp_path) == []
