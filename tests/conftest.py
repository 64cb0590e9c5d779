"""What holds for every test: the repository is importable, and where CI is set nothing may be skipped."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import signal
import sqlite3
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parents[1]))  # `from tests.architecture import …`, however pytest was started

_NO = {"", "0", "false", "no", "off"}
_Report = TypeVar("_Report", pytest.TestReport, pytest.CollectReport)


def in_ci() -> bool:
    return os.environ.get("CI", "").strip().lower() not in _NO


def pytest_configure(config: pytest.Config) -> None:
    if "s" not in config.option.reportchars:
        config.option.reportchars += "s"  # a skip is always listed with its reason
    settings.register_profile("any machine", deadline=None)  # a busy one takes longer, and that is no fault of the code
    settings.load_profile("any machine")
    # A shell starts what it runs in the background deaf to Ctrl-C, and `nohup` deaf to a hang-up; so would be everything that a
    # test starts and interrupts.
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL), (signal.SIGHUP, signal.SIG_DFL)
    ):  # fmt: skip
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def pytest_report_header() -> str:
    versions = {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "uvloop": importlib.metadata.version("uvloop"),
        "msgspec": importlib.metadata.version("msgspec"),
    }
    return ", ".join(f"{name} {version}" for name, version in versions.items()) + (", skips are failures" if in_ci() else "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever drives a browser is run in processes of its own, wherever it stands."""
    for item in items:
        if "tests/browser/" in item.path.as_posix() or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _refuse_skip((yield))


def _refuse_skip(report: _Report) -> _Report:
    """A skip becomes a failure where CI is set; an expected failure (xfail) is none."""
    if report.skipped and not hasattr(report, "wasxfail") and in_ci():
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{reason} (nothing may be skipped where CI is set)"
    return report


@pytest.fixture(scope="session", autouse=True)
def _recorded_events_are_valid() -> Iterator[None]:
    """Whatever daemon a test has started: its events are held against the published schema before they are removed."""
    from agent_relay.testing.daemon import DaemonProcess
    from tests.support.event_schema import check_recorded

    remove = DaemonProcess.remove

    def check_and_remove(daemon: DaemonProcess) -> None:
        try:
            daemon.kill()
            check_recorded(daemon.state_dir)
        finally:
            remove(daemon)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaemonProcess, "remove", check_and_remove)
        yield


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One for all tests of a process: Playwright takes no second beside it."""
    from tests.browser.stage import open_browser

    with open_browser() as started:
        yield started
