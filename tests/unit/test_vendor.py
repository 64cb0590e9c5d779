"""The browser libraries in the package are those of the manifest, unchanged, and can be loaded where they are."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from scripts.vendor import MANIFEST, VENDOR, adapt, check, read_manifest

TESTS = Path(__file__).parent.parent / "browser/vendor"


@pytest.mark.parametrize("folder", [VENDOR, TESTS], ids=["package", "tests"])
def test_every_file_is_what_the_manifest_says(folder: Path) -> None:
    assert check(folder) == []


def test_a_changed_a_missing_and_a_foreign_file_are_found(tmp_path: Path) -> None:
    there = tmp_path / "vendor"
    shutil.copytree(VENDOR, there)
    (there / "preact/preact.mjs").write_text("changed")
    (there / "htm/htm.mjs").unlink()
    (there / "extra.js").write_text("")
    assert check(there) == [
        "preact/preact.mjs is not what the manifest says.",
        "htm/htm.mjs is missing.",
        "extra.js is not in the manifest.",
    ]


@pytest.mark.parametrize(
    "package", [*read_manifest(VENDOR)["packages"], *read_manifest(TESTS)["packages"]], ids=lambda package: package["name"]
)
def test_every_package_is_pinned_and_brings_its_licence(package: dict[str, object]) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(package["version"]))
    assert package["licence"]
    assert str(package["integrity"]).startswith("sha512-")
    files = package["files"]
    assert isinstance(files, list)
    assert any("LICENSE" in entry["path"] for entry in files)


def test_the_manifest_is_written_as_the_script_writes_it() -> None:
    text = (VENDOR / MANIFEST).read_text()
    assert text == json.dumps(json.loads(text), indent=2) + "\n"


def test_imports_by_name_become_relative_paths() -> None:
    modules = {"preact": "preact/preact.mjs", "preact/hooks": "preact/hooks.mjs"}
    code = b'import{h}from"preact";import{useId}from"preact/hooks";export{h};\n//# sourceMappingURL=x.map'
    assert adapt(code, "signals/signals.mjs", modules) == (
        b'import{h}from"../preact/preact.mjs";import{useId}from"../preact/hooks.mjs";export{h};\n'
    )
    assert adapt(b'import{h}from"preact";', "preact/hooks.mjs", modules) == b'import{h}from"./preact.mjs";'


def test_an_import_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(SystemExit, match="imports lodash"):
        adapt(b'import x from "lodash";', "a/b.js", {})


def test_styles_and_fonts_stay_as_they_are() -> None:
    assert adapt(b'from"preact";', "a/b.css", {}) == b'from"preact";'
