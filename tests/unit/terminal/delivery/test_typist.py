"""The hands at a terminal: what they look at, what they type, and what wakes them. The watcher is real, the terminal a desk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from agent_relay.protocol.holds import Hold, HoldReason
from agent_relay.terminal.backends.terminal import Foreground, Key, PersonSeen, Terminal, TerminalEnded
from agent_relay.terminal.delivery.injection import Done, Failed, Wait
from agent_relay.terminal.delivery.message_text import MAX_UNBRACKETED_CHARACTERS, Room
from agent_relay.terminal.delivery.prompt_view import PromptView
from agent_relay.terminal.delivery.typist import HOLD_S, SOON_S, STUCK_S, TOO_LATE, HoldReport, Typist
from agent_relay.terminal.output.watcher import CommandSeen, Watcher
from agent_relay.terminal.profiles.profile import Profile, load_profiles
from agent_relay.terminal.screen.contents import Cursor, Screen, screen_of_text

PROFILES = load_profiles()
MARK = "[abc12345]"
TEXT = f"Relay message from Alice {MARK}: hello"


class Desk:
    """A program with a prompt: what is pasted stands in it, Enter takes it. Everything that was typed is kept in order."""

    def __init__(self, profile: Profile) -> None:
        self.typed: list[str] = []
        self.draft = ""
        self.said = "hello"
        self.dialog = ""
        self.takes_paste: bool | None = True
        self.reader: Foreground | None = None
        self.takes_enter = True
        self.has_ended = False
        self.person_seen = PersonSeen(is_attached=False)
        self.watcher = Watcher(profile)
        self.commands: list[str] = []
        self.looks = 0
        self.view = PromptView(self.watcher)
        self.typist = Typist(cast("Terminal[Screen]", self), self.watcher, self.view, profile, self.read)

    async def read(self) -> None:
        self.looks += 1
        if self.has_ended:
            raise TerminalEnded("It has ended.")
        last = self.dialog or f"> {self.draft}".rstrip()
        screen = screen_of_text(f"{self.said}\n{last}", cursor=Cursor(self.said.count("\n") + last.count("\n") + 1, len(last)))
        t = asyncio.get_running_loop().time()
        events = self.watcher.saw(screen, t)
        self.commands += [str(event.command) for event in events if isinstance(event, CommandSeen)]
        self.view.note_screen(screen, t)

    async def person(self) -> PersonSeen:
        return self.person_seen

    async def foreground(self) -> Foreground | None:
        return self.reader

    async def paste(self, text: str) -> None:
        self.typed.append(text)
        self.draft += text

    async def press(self, key: Key) -> None:
        self.typed.append(key.value)
        if self.takes_enter:
            self.said, self.draft = f"{self.said}\n> {self.draft}", ""

    async def write(self, data: bytes) -> None:
        self.typed.append(repr(data))
        self.draft = ""

    async def type_in(self, text: str = TEXT, **options: Any) -> Done | Failed:
        return await self.typist.type_in(lambda room: text, MARK, **options)


def play(scene: Callable[[Desk], Awaitable[None]], profile: Profile = PROFILES["generic"]) -> Desk:
    async def run() -> Desk:
        desk = Desk(profile)
        async with asyncio.timeout(120):
            await scene(desk)
        return desk

    return asyncio.run(run())


async def passes(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_paste_then_enter_then_seen_to_be_taken() -> None:
    async def scene(desk: Desk) -> None:
        before = asyncio.get_running_loop().time()
        assert await desk.type_in() == Done("composer")
        assert before < desk.view.last_enter < asyncio.get_running_loop().time()

    assert play(scene).typed == [TEXT, "Enter"]


def test_two_texts_keep_their_order_and_their_distance() -> None:
    async def scene(desk: Desk) -> None:
        assert await desk.type_in("one") == Done("composer")
        first = desk.view.last_enter
        assert await desk.type_in("two") == Done("composer")
        assert desk.view.last_enter - first >= 0.5

    assert play(scene).typed == ["one", "Enter", "two", "Enter"]


def test_what_is_typed_in_is_nobodys_command() -> None:
    async def scene(desk: Desk) -> None:
        await desk.type_in(f"{TEXT}\n->relay:Bob pay")
        desk.said = f"hello\n{TEXT}\n->relay:Bob pay\nok"
        await desk.read()
        await desk.read()

    assert play(scene).commands == []


@pytest.mark.parametrize("obstacle", ["paused", "dialog"])
def test_what_waited_goes_on_as_soon_as_it_may(obstacle: str) -> None:
    async def scene(desk: Desk) -> None:
        if obstacle == "paused":
            desk.typist.pause()
        else:
            desk.dialog = "Allow this? Run the command [y/n]"
        typing = asyncio.create_task(desk.type_in())
        await passes(lambda: desk.looks > 0)
        assert desk.typed == []
        assert desk.typist.is_paused == (obstacle == "paused")
        started = asyncio.get_running_loop().time()
        desk.dialog = ""
        desk.typist.resume()
        await passes(lambda: bool(desk.typed))
        assert asyncio.get_running_loop().time() - started < 4.5  # not the five seconds of looking again
        assert await typing == Done("composer")

    play(scene)


def test_the_session_file_wakes_and_proves() -> None:
    async def scene(desk: Desk) -> None:
        desk.takes_enter = False
        typing = asyncio.create_task(desk.type_in())
        desk.view.note_taken(TEXT)  # before anything was typed
        await passes(lambda: desk.typed == [TEXT, "Enter"])
        desk.view.note_taken("another text")
        desk.view.note_taken(f"what came: {TEXT}")
        assert await typing == Done("transcript")
        desk.view.note_taken(TEXT)  # too late to mean the next one
        desk.draft, desk.takes_enter = "", True
        assert await desk.type_in("next") == Done("composer")

    play(scene)


def test_what_is_too_late_is_not_begun_and_what_is_begun_is_finished() -> None:
    async def scene(desk: Desk) -> None:
        now = asyncio.get_running_loop().time()
        assert await desk.type_in(until=now) == Failed(TOO_LATE)
        desk.typist.pause()
        assert await desk.type_in(until=now + 0.2) == Failed(TOO_LATE)
        assert 0.2 <= asyncio.get_running_loop().time() - now < 4
        assert desk.typed == []
        desk.typist.resume()
        typing = asyncio.create_task(desk.type_in(until=now + 5))
        await passes(lambda: bool(desk.typed))
        assert await typing == Done("composer")

    play(scene)


def test_a_person_is_looked_for_at_every_step() -> None:
    async def scene(desk: Desk) -> None:
        desk.person_seen = PersonSeen(is_attached=True, typed_ms_ago=0)
        typing = asyncio.create_task(desk.type_in())
        await passes(lambda: desk.looks > 0)
        assert desk.typed == []
        desk.person_seen = PersonSeen(is_attached=True, typed_ms_ago=60_000, is_scrolled_back=True)
        desk.view.note_person(asyncio.get_running_loop().time())
        assert await typing == Done("composer")

    play(scene)


def test_the_end_of_the_program_ends_the_typing() -> None:
    async def scene(desk: Desk) -> None:
        desk.takes_enter = False
        typing = asyncio.create_task(desk.type_in())
        await passes(lambda: bool(desk.typed))
        desk.has_ended = True
        with pytest.raises(TerminalEnded):
            await typing

    play(scene)


@pytest.mark.parametrize(("key", "typed"), [("\r", "Enter"), ("\t", "Tab"), ("\x13", repr(b"\x13"))])
def test_the_key_of_the_profile_is_pressed(key: str, typed: str) -> None:
    profile = replace(PROFILES["generic"], submit=replace(PROFILES["generic"].submit, key=key))

    async def scene(desk: Desk) -> None:
        assert await desk.type_in() == Done("composer")

    assert play(scene, profile).typed == [TEXT, typed]


@pytest.mark.parametrize(
    ("cli", "takes_paste", "limit", "room"),
    [
        ("claude", True, 0, Room()),
        ("claude", None, 0, Room()),
        ("claude", True, 4_000, Room(max_characters=4_000)),
        ("generic", True, 0, Room()),
        ("generic", None, 0, Room(is_bracketed=False, max_characters=MAX_UNBRACKETED_CHARACTERS)),
        ("claude", False, 0, Room(is_bracketed=False, max_characters=MAX_UNBRACKETED_CHARACTERS)),
        ("claude", False, 4_000, Room(is_bracketed=False, max_characters=MAX_UNBRACKETED_CHARACTERS)),
        ("claude", False, 200, Room(is_bracketed=False, max_characters=200)),
    ],
)
def test_the_room_for_a_text(cli: str, takes_paste: bool | None, limit: int, room: Room) -> None:
    # The look of one program, the manners of another: only what is asked of the profile differs.
    profile = replace(PROFILES["generic"], name=cli, submit=replace(PROFILES["generic"].submit, max_characters=limit))
    rooms: list[Room] = []

    async def scene(desk: Desk) -> None:
        desk.takes_paste = takes_paste

        def render(given: Room) -> str:
            rooms.append(given)
            return TEXT

        assert await desk.typist.type_in(render, MARK) == Done("composer")

    play(scene, profile)
    assert rooms == [room]


# --- why a text waits --------------------------------------------------------------------------------------------------


TYPING = Wait(0, "a person is typing", hold=HoldReason.TYPING)
PROMPT = Wait(0, "its prompt was not recognised", is_stuck=True, hold=HoldReason.PROMPT)
UNSURE = Wait(0, "its prompt was not recognised", is_stuck=True, is_sure=False, hold=HoldReason.PROMPT)
BRIEF = Wait(0, "the screen is still changing")


def told(*steps: tuple[float, object], was_ready: bool = True) -> list[tuple[str | None, bool]]:
    said: list[tuple[str | None, bool]] = []

    def tell(hold: Hold | None, is_long: bool) -> None:
        said.append((None if hold is None else hold.reason, is_long))

    report = HoldReport(tell)
    for t, step in steps:
        report.note(step, t, was_ready=was_ready)  # type: ignore[arg-type]
    return said


def test_what_is_over_in_a_moment_is_told_to_nobody() -> None:
    assert told((0, TYPING), (HOLD_S - 0.1, TYPING), (HOLD_S, Done("composer"))) == []
    assert told((0, BRIEF), (100, BRIEF)) == []


def test_what_lasts_is_told_once_and_so_is_its_end() -> None:
    assert told((0, TYPING), (HOLD_S, TYPING), (2, TYPING), (STUCK_S * 2, TYPING), (99, Done("composer"))) == [
        ("typing", False),
        (None, False),
    ]


def test_what_may_never_end_is_told_to_the_sender_after_a_while() -> None:
    steps = [(0.0, PROMPT), (HOLD_S, PROMPT), (STUCK_S - 1, PROMPT), (STUCK_S, PROMPT), (STUCK_S + 1, PROMPT)]
    assert told(*steps) == [("prompt", False), ("prompt", True)]


def test_the_sender_is_told_soon_where_it_was_never_ready() -> None:
    steps = [(t / 2, PROMPT) for t in range(200)]
    assert told(*steps[: int(2 * SOON_S)], was_ready=False) == [("prompt", False)]
    assert told(*steps, was_ready=False) == [("prompt", False), ("prompt", True)]


def test_a_program_that_may_be_starting_has_more_time() -> None:
    steps = [(t / 2, UNSURE) for t in range(200)]
    assert told(*steps[: int(2 * STUCK_S)], was_ready=False) == []
    assert told(*steps, was_ready=False) == [("prompt", True)]


def test_what_was_told_is_not_taken_back_by_looking_again() -> None:
    steps = [(t / 2, PROMPT) for t in range(8)] + [(4.0, UNSURE), (4.5, UNSURE)]
    assert told(*steps, was_ready=False) == [("prompt", False), ("prompt", True)]


def test_each_reason_is_told() -> None:
    assert told((0, TYPING), (1, TYPING), (2, PROMPT), (3, PROMPT)) == [("typing", False), ("prompt", False)]


def test_one_that_has_no_word_is_told_by_its_sentence() -> None:
    said: list[Hold | None] = []
    report = HoldReport(lambda hold, _: said.append(hold))
    for t in (0.0, HOLD_S):
        report.note(Wait(0, "nobody has foreseen this", is_stuck=True), t, was_ready=True)
    assert said == [Hold("other", "nobody has foreseen this")]
