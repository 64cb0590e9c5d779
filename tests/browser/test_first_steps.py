"""An empty relay: its page offers what is installed, says what is not before it is submitted, and knows which project it is."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from agent_relay.testing.daemon import DaemonProcess
from tests.browser.stage import PHONE, expect_to_fit, open_page

HERE = "Start claude here"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    """With claude, and no other CLI, on its PATH; and another relay of the same person, as far as its files say so."""
    programs = tmp_path_factory.mktemp("programs")
    (programs / "claude").write_text("#!/bin/sh\nexec cat\n")
    (programs / "claude").chmod(0o755)
    made = DaemonProcess("--port=0")
    made.environ["PATH"] = str(programs)
    with made:
        url = made.wait_for_url()
        other = made.directory / "home" / "projects" / "other"
        other.mkdir(parents=True)
        (other / "project.json").write_text(json.dumps({"root": "/srv/the-other"}))
        (other / "http.json").write_text(json.dumps({"url": f"{url}/?other", "host": "127.0.0.1"}))
        (other / "agents.json").write_text(json.dumps({"agents": [{"name": "Ann", "connected": True}, {"name": "Ben"}]}))
        with (other / "relay.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield made


@pytest.fixture
def page(browser: Browser, daemon: DaemonProcess) -> Iterator[Page]:
    with open_page(browser, f"{daemon.wait_for_url()}/", daemon) as (opened, _):
        expect(opened.get_by_role("heading", name="Start your first agents")).to_be_visible()
        yield opened


def test_it_offers_what_is_installed_with_model_and_permission_mode(page: Page) -> None:
    steps = page.get_by_role("region", name="First steps")
    expect(steps.get_by_text("agent-relay -n Alice claude")).to_be_visible()
    expect(page.get_by_text("agent-relay demo")).to_be_visible()
    expect(page.get_by_text("Not installed here")).to_contain_text("codex")
    expect(page.get_by_role("button", name=re.compile("^Start .* here"))).to_have_text([HERE])
    page.get_by_role("button", name=HERE).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("radio", name="claude")).to_be_checked()
    dialog.get_by_label("Model").fill("opus")
    modes = dialog.get_by_label("Permission mode").locator("option")
    expect(modes.filter(has_text="plan")).to_have_count(1)
    expect(modes.filter(has_text="bypassPermissions")).to_have_count(0)
    expect(dialog.get_by_role("button", name="Start agent")).to_be_enabled()
    dialog.get_by_text("codex").click()
    expect(dialog.locator("[data-missing]")).to_contain_text("codex is not installed")
    expect(dialog.locator("[data-missing]")).to_contain_text("npm install")
    expect(dialog.get_by_role("button", name="Start agent")).to_be_disabled()


def test_the_bar_says_which_project_it_is_and_leads_to_the_others(page: Page, daemon: DaemonProcess) -> None:
    project = page.get_by_role("button", name=re.compile("^Project "))
    assert page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--project-hue')")
    project.click()
    entry = page.get_by_role("menuitem", name="the-other")
    expect(entry).to_contain_text("1 agent")
    entry.click()
    expect(page).to_have_url(re.compile(rf"^{re.escape(daemon.wait_for_url())}/\?other"))


def test_what_is_being_written_outlives_the_page(page: Page) -> None:
    field = page.get_by_label("Message", exact=True)
    field.fill("Half a thought")
    page.reload()
    expect(field).to_have_value("Half a thought")
    field.fill("")
    page.reload()
    expect(page.get_by_role("heading", name="Start your first agents")).to_be_visible()
    expect(field).to_have_value("")


def test_it_fits_on_a_phone(browser: Browser, daemon: DaemonProcess) -> None:
    with open_page(browser, f"{daemon.wait_for_url()}/", daemon, viewport=PHONE, has_touch=True, is_mobile=True) as (page, _):
        expect(page.get_by_role("button", name=HERE)).to_be_visible()
        expect_to_fit(page)
