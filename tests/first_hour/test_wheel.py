"""What is installed with the wheel, and what is not."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.terminals, pytest.mark.timeout(600)]  # whoever comes first installs the wheel


@pytest.fixture
def names(commands: Path) -> list[str]:
    (wheel,) = commands.parents[1].glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_licences_of_vendored_files_are_in_the_wheel(names: list[str]) -> None:
    vendored = {
        name.split("/vendor/")[1].split("/")[0]
        for name in names
        if "/static/vendor/" in name and name.endswith((".js", ".css", ".woff2"))
    }
    licensed = {
        name.split("/vendor/")[1].split("/")[0] for name in names if ".dist-info/licenses/" in name and "/vendor/" in name
    }
    assert vendored
    assert vendored <= licensed
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_no_test_is_in_the_wheel(names: list[str]) -> None:
    assert [name for name in names if "suite" in name or name.startswith("tests/") or "/tests/" in name] == []
