"""What was said, and saying something; finding it again, and taking it along."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage, Visit
from tests.browser.stage import Stage, until


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit("conversations/all", permissions=["clipboard-read", "clipboard-write"])


def test_a_new_message_appears_by_itself_with_its_receipt(page: Page, stage: Stage) -> None:
    message = stage.send("Alice", "Bob", "The *new* parser is **in**: see `parser.py`.")
    row = page.locator(f'[data-message="{message}"]')
    expect(row).to_contain_text("The new parser is in: see parser.py.")
    expect(row.locator("strong")).to_have_text("in")
    expect(row.locator("code")).to_have_text("parser.py")
    expect(row.locator('.ticks[data-stage="delivered"], .ticks[data-stage="read"]')).to_be_visible()
    row.locator(".ticks").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")  # by keys, so that it stays while the list moves under the mouse
    expect(page.locator(".evidence")).to_contain_text("Bob")
    expect(page.locator(".evidence")).to_contain_text("seen:")


def test_a_person_writes_to_one_agent(page: Page, stage: Stage) -> None:
    page.get_by_role("link", name="Bob", exact=False).first.wait_for()
    page.goto(f"{stage.url}/#/conversations/agent/Bob")
    field = page.get_by_label("Message", exact=True)
    field.fill("Please rebase onto main.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article.message").last).to_contain_text("Please rebase onto main.")
    expect(field).to_have_value("")


def test_kinds_are_told_apart_and_code_is_coloured(page: Page, stage: Stage) -> None:
    for kind in ("action", "state", "thinking"):
        sent = stage.send("Alice", "Bob", f"of kind {kind}", kind=kind)
        expect(page.locator(f'[data-message="{sent}"].kind-{kind} .badge').first).to_have_text(kind)
    sent = stage.send("Alice", "Bob", '```python\ndef greet():\n    return "hello"\n```')
    expect(page.locator(f'[data-message="{sent}"] pre [class^=hljs]').first).to_be_visible()


def test_a_topic_is_shown_once_and_leads_to_its_messages(page: Page, stage: Stage) -> None:
    name = 'ci.<b>"x"'  # nothing in it is markup, nor the end of a filter
    sent = [stage.send("Alice", "Bob", f"under it {number}", topic=name) for number in range(2)]
    other = stage.send("Alice", "Bob", "under another", topic="ci.y")
    plain = stage.send("Alice", "Bob", "under none")
    published = stage.send("Alice", None, "to whoever listens", topic=name)
    first, second, third, fourth, last = (page.locator(f'[data-message="{each}"]') for each in (*sent, other, plain, published))
    expect(first.locator(".badge.topic")).to_have_text(f"topic {name}")
    expect(second).to_have_class(re.compile(r"\bsame\b"))
    expect(second.locator(".badge.topic")).to_have_count(0)
    expect(third.locator(".badge.topic")).to_have_text("topic ci.y")
    expect(fourth.locator(".from")).to_be_visible()
    expect(fourth.locator(".badge.topic")).to_have_count(0)
    expect(last.locator(".badge.topic")).to_have_text(f"topic {name}")
    first.locator(".badge.topic").click()
    expect(page.get_by_label("Search in All messages")).to_have_value(f"topic:{name}")
    expect(page.locator(".found")).to_contain_text("3 messages")
    expect(second).to_have_class(re.compile(r"\bsame\b"))  # as read again
    expect(page.locator(".message .badge.topic")).to_have_count(2)


def test_code_stays_plain_while_its_colours_cannot_be_loaded(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/costs", allows_network_errors=True)
    library = re.compile("/vendor/highlight/")
    page.route(library, lambda route: route.abort())
    page.goto(f"{stage.url}/#/conversations/all")
    sent = stage.send("Alice", "Bob", "```python\nplain = True\n```")
    with page.expect_event("requestfailed", lambda request: bool(library.search(request.url))):
        expect(page.locator(f'[data-message="{sent}"] pre')).to_have_text("plain = True")
    page.unroute(library)
    sent = stage.send("Alice", "Bob", "```python\ncoloured = True\n```")
    expect(page.locator(f'[data-message="{sent}"] pre [class^=hljs]').first).to_be_visible()


def test_what_is_searched_is_marked_and_shown_where_it_was_said(page: Page, stage: Stage) -> None:
    sent = stage.send("Gina", "Ada", "The zanzibar index is corrupt.")
    expect(page.locator(".message").last).to_contain_text("zanzibar")
    page.keyboard.press("/")
    page.keyboard.type("zanzibar")
    expect(page.locator(".found")).to_contain_text("1 message with “zanzibar”")
    expect(page.locator("mark")).to_have_text(["zanzibar"])
    page.get_by_role("link", name="Show in context").click()
    expect(page.locator("main h1")).to_have_text("Ada and Gina")
    expect(page.locator(f'[data-message="{sent}"].chosen')).to_be_visible()
    page.go_back()
    expect(page.locator(".found")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_value("zanzibar")


def test_what_is_typed_into_the_search_stays_whatever_happens_meanwhile(page: Page) -> None:
    page.locator(".message").first.wait_for()
    # All of it in one go: the address follows what is typed a moment later, and the view is drawn anew before that.
    typed = """async () => {
      const field = document.querySelector("input[type=search]");
      field.value = "corr";
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
      document.querySelector(".message").click();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return field.value;
    }"""
    assert page.evaluate(typed) == "corr"
    expect(page).to_have_url(re.compile("search=corr"))


@pytest.mark.parametrize("kind", ["Markdown", "JSON"])
def test_a_conversation_is_exported(page: Page, stage: Stage, tmp_path: Path, kind: str) -> None:
    stage.send("Ada", "Gina", f"to be taken along as {kind}")
    page.goto(f"{stage.url}/#/conversations/pair/Ada,Gina")
    expect(page.locator(".message").last).to_contain_text(kind)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
        page.get_by_role("menuitem", name=f"Export as {kind}").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == ("conversation-Ada-Gina.md" if kind == "Markdown" else "conversation-Ada-Gina.json")
    text = path.read_text()
    bodies = text if kind == "Markdown" else [message["body"] for message in json.loads(text)["messages"]]
    assert f"to be taken along as {kind}" in bodies


def test_a_message_and_a_link_to_it_are_copied(page: Page, stage: Stage) -> None:
    sent = stage.send("Ada", "Lead", "copy **me**")
    row = page.locator(f'[data-message="{sent}"]')
    for button, copied in (("Copy text", "copy **me**"), ("Copy link", f"{stage.url}/#/conversations/pair/Ada%2CLead")):
        row.hover()
        row.get_by_role("button", name=button).click()
        expect(page.get_by_text("Copied.").last).to_be_visible()
        until(page, lambda text=copied: page.evaluate("navigator.clipboard.readText()").startswith(text), f"{copied} is copied")
    page.goto(page.evaluate("navigator.clipboard.readText()"))
    expect(page.locator(f'[data-message="{sent}"].chosen')).to_be_visible()
    expect(page.locator(".details")).to_contain_text("Sent to Lead")


def test_channels_are_joined_left_and_written_to(page: Page, stage: Stage) -> None:
    listed = page.get_by_role("navigation", name="Conversations")
    expect(listed.get_by_role("link", name="general")).to_be_visible()  # everybody is in it, and nothing was said yet
    page.get_by_role("button", name="Join a channel").click()
    page.get_by_label("Channel", exact=True).fill("plans")
    page.get_by_role("button", name="Join", exact=True).click()
    expect(page.get_by_role("heading", name="#plans")).to_be_visible()
    members = page.get_by_role("button", name="Members of #plans")
    expect(members).to_contain_text("1 member")
    members.click()
    page.get_by_role("menuitem", name="Add Alice").click()
    expect(members).to_contain_text("2 members")
    page.get_by_label("Message", exact=True).fill("Who reviews auth.py?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article.message").last).to_contain_text("Who reviews auth.py?")
    found = next(each for each in stage.get("channels")["channels"] if each["name"] == "#plans")
    assert ("Alice" in found["members"], found["messages"]) == (True, 1)
    with stage.daemon.connect_sync(observer=True) as owner:
        owner.set_topic_line("#plans", "Plans before code")
    page.reload()
    expect(page.locator(".topic-line")).to_have_text("Plans before code")
    members.click()
    page.get_by_role("menuitem", name="Leave", exact=True).click()
    expect(members).to_contain_text("1 member")


def test_a_conversation_is_shared_as_one_file_without_what_is_secret(
    page: Page, browser: Browser, stage: Stage, tmp_path: Path
) -> None:
    key, home = "sk-" + "a1B2" * 8, "/".join(("", "home", "ada"))
    stage.send("Ada", "Otto", f"Use `{key}` of ada@example.org, **please**; in {home}/x. Project Nightjar. <script>1</script>")
    page.goto(f"{stage.url}/#/conversations/pair/Ada,Otto")
    expect(page.locator(".message").last).to_contain_text("Nightjar")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("menuitem", name="Share as one HTML file").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("in the time zone")
    dialog.get_by_label("Hide these words").fill("nightjar")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Save HTML file").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    text = path.read_text()
    assert path.name == "conversation-Ada-Otto.html"
    assert not any(secret in text for secret in (key, "ada@example.org", home, "Nightjar", "<script"))
    assert "default-src 'none'" in text
    context = browser.new_context(offline=True)
    shared = context.new_page()
    shared.goto(path.as_uri())
    expect(shared.locator("h1")).to_have_text("Ada and Otto")
    expect(shared.locator("article strong", has_text="please")).to_be_visible()
    expect(shared.locator("header.top")).to_contain_text(re.compile(r"times in \S+ \((GMT|UTC)"))
    context.close()
