"""The browser libraries of the dashboard, as files in the package: taken from npm, pinned, each with its licence.

    python scripts/vendor.py            # fetches the versions the manifest names, and writes every file anew
    python scripts/vendor.py --newest   # moves to the newest version of each first
    python scripts/vendor.py tests/browser/vendor    # those of another folder

`vendor/manifest.json` says what is taken: `files` maps a path in the npm package to one here. Browsers do not know where
`import "preact"` leads, so such imports are written as relative paths; comments that lead to source maps are left out.
`sha256` is of the file as it is here, `integrity` of the package as npm gave it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import posixpath
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).resolve().parent.parent / "src/agent_relay/dashboard/static/vendor"
MANIFEST = "manifest.json"
_IMPORT = re.compile(r"""((?:\bfrom|\bimport)\s*)(["'])((?:@[\w.-]+/)?[a-z][\w.-]*(?:/[\w.-]+)*)\2(?=\s*(?:;|$|import|export))""")
_SOURCE_MAP = re.compile(rb"(?://|/\*)# sourceMappingURL=[^\n]*")


def read_manifest(vendor: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((vendor / MANIFEST).read_text())
    return found


def refresh(vendor: Path, *, newest: bool) -> None:
    manifest = read_manifest(vendor)
    modules = {name: path for package in manifest["packages"] for name, path in package.get("modules", {}).items()}
    for package in manifest["packages"]:
        wanted = package["name"] if newest else f"{package['name']}@{package['version']}"
        with tempfile.TemporaryDirectory() as folder:
            _take(package, _fetch(wanted, Path(folder)), vendor, modules)
        sys.stdout.write(f"{package['name']} {package['version']} ({package['licence']})\n")
    (vendor / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def _fetch(wanted: str, folder: Path) -> Path:
    command = ["npm", "pack", wanted, "--json"]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603
    return folder / str(json.loads(said.stdout)[0]["filename"])


def _take(package: dict[str, Any], archive: Path, vendor: Path, modules: dict[str, str]) -> None:
    package["integrity"] = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    with tarfile.open(archive) as files:
        about = json.loads(_read(files, "package.json"))
        package["version"], package["licence"] = about["version"], about["license"]
        for entry in package["files"]:
            data = adapt(_read(files, entry["source"]), entry["path"], modules)
            target = vendor / entry["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            entry["sha256"] = hashlib.sha256(data).hexdigest()


def _read(files: tarfile.TarFile, path: str) -> bytes:
    member = files.extractfile(f"package/{path}")
    if member is None:
        raise SystemExit(f"{path} is no file of the package.")
    return member.read()


def adapt(data: bytes, path: str, modules: dict[str, str]) -> bytes:
    """`data` as a browser can load it from `path`; raises SystemExit where it imports a module that is not here."""
    data = _SOURCE_MAP.sub(b"", data)
    if not path.endswith((".js", ".mjs")):
        return data

    def lead(match: re.Match[str]) -> str:
        name = match[3]
        if name not in modules:
            raise SystemExit(f"{path} imports {name}, which the manifest does not have.")
        relative = posixpath.relpath(modules[name], posixpath.dirname(path))
        return f"{match[1]}{match[2]}{relative if relative.startswith('.') else './' + relative}{match[2]}"

    return _IMPORT.sub(lead, data.decode()).encode()


def check(vendor: Path) -> list[str]:
    """Faults of the files: changed, missing, or not in the manifest."""
    wrong = []
    listed = {MANIFEST}
    for package in read_manifest(vendor)["packages"]:
        for entry in package["files"]:
            listed.add(entry["path"])
            file = vendor / entry["path"]
            if not file.is_file():
                wrong.append(f"{entry['path']} is missing.")
            elif hashlib.sha256(file.read_bytes()).hexdigest() != entry["sha256"]:
                wrong.append(f"{entry['path']} is not what the manifest says.")
    there = {file.relative_to(vendor).as_posix() for file in vendor.rglob("*") if file.is_file()}
    return wrong + [f"{path} is not in the manifest." for path in sorted(there - listed)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Refresh the dashboard's browser libraries from npm.")
    parser.add_argument("folder", nargs="?", type=Path, default=VENDOR, help="where the manifest is")
    parser.add_argument("--newest", action="store_true", help="move to the newest version of each")
    options = parser.parse_args()
    refresh(options.folder, newest=options.newest)
    wrong = check(options.folder)
    sys.stderr.write("".join(f"{each}\n" for each in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
