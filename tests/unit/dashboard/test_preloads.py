"""The page asks for what it needs at once: its list of modules is what its files import."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.dashboard_preloads import STATIC, find_modules, write_list


def test_the_list_in_the_page_is_what_its_files_import() -> None:
    page = (STATIC / "index.html").read_text()
    assert write_list(page, find_modules(STATIC)) == page, "run scripts/dashboard_preloads.py"


def test_imports_are_followed_and_those_on_demand_are_not(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "app.js").write_text('import { a } from "./lib/a.js";\nconst load = () => import("./late.js");\n')
    (tmp_path / "lib/a.js").write_text('export {\n  b,\n} from "./b.mjs";import{c}from"../c.js";import "./d.js";\n')
    for name in ("lib/b.mjs", "c.js", "lib/d.js", "late.js"):
        (tmp_path / name).write_text("")
    assert find_modules(tmp_path, ("app.js",)) == ["c.js", "lib/a.js", "lib/b.mjs", "lib/d.js"]


def test_a_page_without_a_list_is_refused() -> None:
    with pytest.raises(SystemExit, match="one list"):
        write_list("<html></html>", ["a.js"])
