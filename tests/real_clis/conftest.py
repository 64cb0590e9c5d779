"""Fixtures of the tests with real CLIs. They run where there is no network, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.real_clis import read_manifest
from tests.real_clis import results
from tests.real_clis.bare import Bare
from tests.real_clis.harness import Lab
from tests.real_clis.offline import is_offline

FOLDER_VARIABLE = "REAL_CLIS"
PAGE_VARIABLE = "REAL_CLIS_RESULTS"  # the page whose table is written

_found: dict[str, results.Result] = {}


@pytest.fixture(scope="session")
def installed() -> Path:
    """The folder with the CLIs."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder or not is_offline():
        pytest.fail("The real CLIs are run by `make test-real-clis`: it installs them, and takes the network away.")
    return Path(folder).resolve()


@pytest.fixture
def lab(installed: Path) -> Iterator[Lab]:
    one = Lab(installed)
    yield one
    one.close()


@pytest.fixture
def bare(installed: Path, cli: str) -> Iterator[Bare]:
    with Bare(installed, cli) as one:
        yield one


# --- the table -----------------------------------------------------------------------------------------------------------


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the process that gathers what the others ran, where there are several."""
    if "real_clis" in report.keywords:
        before = _found.get(report.nodeid)
        note = next((str(value) for name, value in report.user_properties if name == "note"), "")
        _found[report.nodeid] = results.Result(report.passed and (before is None or before.has_passed), note)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    page = os.environ.get(PAGE_VARIABLE)
    was_whole = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)  # not when somebody interrupted it
    if page and _found and was_whole and not hasattr(session.config, "workerinput"):
        versions = {cli.name: cli.version for cli in read_manifest().values()}
        results.write(Path(page), results.render(_found, versions))
