"""Where CI is set a skip is a failure, in whatever way it is written; elsewhere it is listed with its reason."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

SKIPPING = {
    "mark": "import pytest\n@pytest.mark.skip(reason='no tmux')\ndef test_a(): ...\n",
    "condition": "import pytest\n@pytest.mark.skipif(True, reason='no tmux')\ndef test_a(): ...\n",
    "call": "import pytest\ndef test_a(): pytest.skip('no tmux')\n",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('no tmux')\ndef test_a(f): ...\n",
    "module": "import pytest\npytest.skip('no tmux', allow_module_level=True)\n",
}
XFAIL = "import pytest\n@pytest.mark.xfail(reason='known', strict=True)\ndef test_b(): assert False\n"


def run_pytest(folder: Path, files: dict[str, str], ci: str | None) -> tuple[int, str]:
    shutil.copy(CONFTEST, folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, source in files.items():
        (folder / f"test_{name}.py").write_text(source)
    environment = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    if ci is not None:
        environment["CI"] = ci
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # nothing here needs them, and they double the time
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors", str(folder)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_with_ci_every_kind_of_skip_fails(tmp_path: Path) -> None:
    code, output = run_pytest(tmp_path, {**SKIPPING, "xfail": XFAIL}, ci="true")
    assert code != 0
    assert "skipped" not in output.splitlines()[-1]
    assert "skips are failures" in output
    for kind in SKIPPING:
        assert re.search(rf"^(FAILED|ERROR) test_{kind}\.py", output, re.MULTILINE), output
    assert output.count("nothing may be skipped where CI is set") >= len(SKIPPING)


def test_with_ci_an_expected_failure_is_still_expected(tmp_path: Path) -> None:
    code, output = run_pytest(tmp_path, {"xfail": XFAIL}, ci="true")
    assert (code, "1 xfailed" in output) == (0, True)


@pytest.mark.parametrize("ci", [None, "false"])
def test_without_ci_a_skip_is_listed_with_its_reason(tmp_path: Path, ci: str | None) -> None:
    code, output = run_pytest(tmp_path, {"mark": SKIPPING["mark"]}, ci)
    assert code == 0
    assert re.search(r"^SKIPPED \[1\] .*no tmux", output, re.MULTILINE), output
