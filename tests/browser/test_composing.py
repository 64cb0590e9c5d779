"""Who gets what a person writes: as the conversation says, as the answered message says, and never changed under the writer."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.stage import Stage, open_page


def test_in_a_thread_it_goes_to_who_spoke_last_until_something_is_written(page: Page, stage: Stage) -> None:
    stage.send("Alice", "Bob", "first words", thread="composing")
    page.goto(f"{stage.url}/#/conversations/thread/composing")
    chips = page.locator(".chip")
    expect(chips).to_have_text(["Alice"])
    stage.send("Bob", "Alice", "second words", thread="composing")
    expect(chips).to_have_text(["Bob"])
    page.get_by_label("Message", exact=True).fill("a draft")
    stage.send("Alice", "Bob", "third words", thread="composing")
    expect(page.locator(".message").last).to_contain_text("third words")
    expect(chips).to_have_text(["Bob"])
    page.keyboard.press("Enter")
    expect(page.locator(".message").last).to_contain_text("a draft")
    expect(page.locator(".message .to").last).to_have_text("Bob")


def test_an_answer_goes_where_its_message_came_from_and_then_all_is_as_before(page: Page, stage: Stage) -> None:
    page.goto(f"{stage.url}/#/conversations/all")
    sent = stage.send("Ada", "Lead", "Who answers this?")
    row = page.locator(f'[data-message="{sent}"]')
    row.hover()
    row.get_by_label("Reply").click()
    expect(page.locator(".chip")).to_have_text(["Ada"])
    page.get_by_label("Message", exact=True).fill("I do.")
    page.keyboard.press("Enter")
    answer = page.locator(".message").last
    expect(answer).to_contain_text("I do.")
    expect(answer.locator(".badge")).to_contain_text("Ada: ")  # the thread is called by the words of what was answered
    expect(page.locator(".chip")).to_have_count(0)


def test_a_message_for_nobody_is_not_sent_and_whom_it_is_for_is_asked(page: Page, stage: Stage) -> None:
    page.goto(f"{stage.url}/#/conversations/all")
    expect(page.locator('.agent[data-agent="Bob"]')).to_be_visible()
    field = page.get_by_role("combobox", name="To")
    expect(page.locator(".message").last).to_be_visible()  # the newest says who is suggested
    field.focus()
    while page.locator(".chip").count():
        page.keyboard.press("Backspace")
    written = page.get_by_label("Message", exact=True)
    written.fill("to whom?")
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    expect(page.locator(".toast", has_text="Choose a recipient.")).to_be_visible()
    expect(written).to_have_value("to whom?")
    field.fill("bob")
    page.keyboard.press("Enter")
    written.press("Enter")
    expect(page.locator(".message").last).to_contain_text("to whom?")


def test_a_channel_or_everyone_stands_alone(page: Page, stage: Stage) -> None:
    page.goto(f"{stage.url}/#/conversations/all")
    expect(page.locator('.agent[data-agent="Bob"]')).to_be_visible()
    field = page.get_by_role("combobox", name="To")
    for word in ("bo", "ali"):
        field.fill(word)
        page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_text(["Bob", "Alice"])
    field.fill("#bui")
    page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_text(["#build"])
    field.fill("every")
    page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_text(["Everyone"])
    page.keyboard.press("Backspace")
    expect(page.locator(".chip")).to_have_count(0)


def test_a_draft_stays_with_its_conversation_and_whom_it_is_for(page: Page, stage: Stage) -> None:
    page.goto(f"{stage.url}/#/conversations/agent/Bob")
    written = page.get_by_label("Message", exact=True)
    expect(page.locator(".chip")).to_have_text(["Bob"])
    written.fill("only for Bob")
    page.goto(f"{stage.url}/#/conversations/agent/Alice")
    expect(page.locator(".chip")).to_have_text(["Alice"])
    expect(written).to_have_value("")
    page.goto(f"{stage.url}/#/conversations/agent/Bob")
    expect(written).to_have_value("only for Bob")
    expect(page.locator(".chip")).to_have_text(["Bob"])
    written.fill("")


def test_an_answer_stays_one_while_its_writer_looks_something_up(page: Page, stage: Stage) -> None:
    sent = stage.send("Ada", "Lead", "Which port was it?", thread="ports")
    page.goto(f"{stage.url}/#/conversations/thread/ports")
    row = page.locator(f'[data-message="{sent}"]')
    row.hover()
    row.get_by_label("Reply").click()
    expect(page.locator(".chip")).to_have_text(["Ada"])
    written = page.get_by_label("Message", exact=True)
    written.fill("It was")
    stage.send("Lead", "Ada", "I do not know the port.", thread="ports")
    page.get_by_placeholder("Search").fill("port")
    expect(page.locator(".found")).to_contain_text("2 messages")
    expect(page.locator(".chip")).to_have_text(["Ada"])
    expect(page.locator(".replying")).to_contain_text("Which port was it?")
    expect(written).to_have_value("It was")
    written.fill("")
    written.press("Escape")


def test_a_name_that_arrives_does_not_take_the_place_of_the_one_about_to_be_chosen(page: Page, stage: Stage) -> None:
    page.goto(f"{stage.url}/#/conversations/all")
    expect(page.locator('.agent[data-agent="Bob"]')).to_be_visible()
    field = page.get_by_role("combobox", name="To")
    field.fill("b")
    options = page.locator("[role=option]")
    expect(options.first).to_contain_text("Bob")
    before = options.all_inner_texts()
    with stage.visitor("Babel"):
        expect(page.locator('.agent[data-agent="Babel"]')).to_be_visible()
        assert options.all_inner_texts() == before
        page.keyboard.press("Enter")
        expect(page.locator(".chip")).to_have_text(["Bob"])
    page.keyboard.press("Backspace")


def test_a_message_whose_answer_was_lost_is_said_again_and_is_one(browser: Browser, stage: Stage) -> None:
    lost = []

    def lose(route: Route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch().status)  # the daemon has it, and the page does not learn that
            route.abort()
        else:
            route.continue_()

    address = f"{stage.url}/#/conversations/agent/Bob"
    with open_page(browser, address, stage.daemon, allows_network_errors=True) as (page, _):
        expect(page.locator(".chip")).to_have_text(["Bob"])
        page.route("**/api/v1/messages", lose)
        written = page.get_by_label("Message", exact=True)
        written.fill("said over a bad line")
        written.press("Enter")
        expect(written).to_have_value("")  # it was taken
        expect(page.locator(".message", has_text="said over a bad line")).to_have_count(1)
        assert lost == [201]
        page.unroute("**/api/v1/messages")
        page.reload()
        expect(page.locator(".message", has_text="said over a bad line")).to_have_count(1)
