"""What is asked, as one request: a door and a screen that see the same, in any order, or only one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from agent_relay.protocol.requests import PermissionRequest
from agent_relay.protocol.states import ClientState
from agent_relay.terminal.doors.door import NotOpen, Resolution
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests import open_requests as asking
from agent_relay.terminal.requests.open_requests import OpenRequests
from agent_relay.terminal.screen.contents import screen_of_text
from agent_relay.terminal.screen.dialogs import OpenDialog, find_dialog
from tests.unit.terminal.doors.heard import until
from tests.unit.terminal.recorded_screens import SCREENS, profile_of, steps_of

TEXT = "Gemini CLI asks to use run_shell_command: rm -rf build"
ASKED = PermissionRequest(
    "gemini-1", TEXT, "run_shell_command", "rm -rf build", options=("deny",), can_allow=False, is_exact=True
)  # fmt: skip
ONCE = "Allow once"


def recorded(text: str) -> OpenDialog:
    found = find_dialog(profile_of("gemini/perm-h-enter"), screen_of_text(text).lines[-40:])
    assert found is not None
    return found


DIALOG = recorded(dict(steps_of("gemini/perm-h-enter"))["prompt open"])
QUESTION = recorded((SCREENS / "gemini" / "tmux" / "17-q-prompt.txt").read_text("utf-8"))
OTHER = recorded((SCREENS / "gemini" / "tmux" / "15-w-prompt.txt").read_text("utf-8"))


class Daemon:
    """What the daemon was told of requests: their ids, and what became of them."""

    state = ClientState.READY

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.resolved: list[tuple[str, str, str]] = []

    def report(self, kind: str, /, **fields: Any) -> None:
        id_ = str(fields.get("requestId") or fields.get("questionId"))
        if kind.endswith(".requested"):
            self.asked.append(fields)
        elif kind.endswith(".resolved"):
            self.resolved.append((id_, str(fields.get("resolution", "answered")), str(fields["resolvedBy"])))

    @property
    def open(self) -> set[str]:
        """By the daemon's rule: what was asked last under an id counts."""
        told = {str(fields.get("requestId") or fields.get("questionId")) for fields in self.asked}
        return told - {id_ for id_, _, _ in self.resolved}


@pytest.fixture(autouse=True)
def _is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTHER_VIEW_S", "OUTCOME_S", "STALE_S", "BLINK_S"):
        monkeypatch.setattr(asking, name, 0.1)


def play(scene: Callable[[OpenRequests, Daemon], Awaitable[None]]) -> None:
    async def run() -> None:
        daemon = Daemon()
        reporter = Reporter(RelayLink(daemon, lambda: daemon))  # type: ignore[arg-type, return-value]
        await scene(OpenRequests(reporter, profile_of("gemini"), lambda beginning: beginning), daemon)

    asyncio.run(run())


@pytest.mark.parametrize("is_door_first", [True, False])
def test_both_views_are_one_request(is_door_first: bool) -> None:
    """With the door's words and the screen's options, told once, and answered once."""

    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(None, has_two_views=True)
        if is_door_first:
            asks.door_asked(ASKED)
        asks.saw(DIALOG, has_two_views=True)
        if not is_door_first:
            assert daemon.asked == []
            asks.door_asked(ASKED)
        (told,) = daemon.asked
        assert (told["requestId"], told["command"], told["canAllow"], told["isExact"]) == ("gemini-1", "rm -rf build", True, True)
        assert (told["description"], told["options"][0]) == (TEXT, ONCE)
        assert (asks.door_id_of("gemini-1"), asks.digest_of("gemini-1")) == ("gemini-1", DIALOG.digest)
        with asks.answering("gemini-1", "approve"):
            asks.saw(None, has_two_views=True)
            asks.door_resolved("gemini-1", Resolution.ALLOWED, "person")
            assert daemon.resolved == []  # it is our doing, and told when it is known to have worked
        asks.door_resolved("gemini-1", Resolution.ALLOWED, "person")
        assert daemon.resolved == [("gemini-1", "approved", "door")]
        await asyncio.sleep(0.2)  # that nothing else is told is what is tested
        assert len(daemon.asked) == len(daemon.resolved) == 1

    play(scene)


@pytest.mark.parametrize("is_door_first", [True, False])
def test_a_late_view_is_the_same_request(is_door_first: bool) -> None:
    """It keeps the id it was told under."""

    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(None, has_two_views=True)
        first = (lambda: asks.door_asked(ASKED), lambda: asks.saw(DIALOG, has_two_views=True))
        for number, view in enumerate(first if is_door_first else first[::-1], 1):
            view()
            await until(lambda number=number: len(daemon.asked) == number, "it is told")  # type: ignore[misc]
        (id_,) = daemon.open
        assert id_ == ("gemini-1" if is_door_first else "screen")
        assert [fields["canAllow"] for fields in daemon.asked] == [not is_door_first, True]
        assert daemon.asked[-1]["command"] == "rm -rf build"
        assert (asks.door_id_of(id_), asks.digest_of(id_)) == ("gemini-1", DIALOG.digest)
        asks.door_resolved("gemini-1", Resolution.DENIED, "person")
        asks.saw(None, has_two_views=True)
        assert daemon.resolved == [(id_, "denied", "person")]

    play(scene)


def test_a_person_answers_at_the_terminal() -> None:
    """The door says how; where it does not, the screen says that it is over."""

    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(None, has_two_views=True)
        for number in ("gemini-1", "gemini-2"):
            asks.door_asked(replace(ASKED, id=number))
            asks.saw(DIALOG, has_two_views=True)
            asks.saw(None, has_two_views=True)
            assert number in daemon.open
            if number == "gemini-1":
                asks.door_resolved(number, Resolution.DENIED, "person")
        await until(lambda: not daemon.open, "both are over")
        assert daemon.resolved == [("gemini-1", "denied", "person"), ("gemini-2", "gone", "person")]

    play(scene)


def test_a_screen_that_is_half_drawn_closes_nothing() -> None:
    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(DIALOG, has_two_views=True)
        asks.door_asked(ASKED)
        asks.saw(None, has_two_views=True)
        asks.saw(DIALOG, has_two_views=True)
        await asyncio.sleep(0.3)  # longer than the door has to say what became of it
        assert (len(daemon.asked), daemon.resolved) == (1, [])

    play(scene)


def test_other_words_are_not_the_same_request() -> None:
    """What the screen shows is told with the only thing that the door told, and is not exact; of two it is nobody's."""

    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(None, has_two_views=True)
        asks.door_asked(ASKED)
        asks.saw(OTHER, has_two_views=True)
        assert daemon.asked == []
        await until(lambda: daemon.asked, "it is told")
        (told,) = daemon.asked
        assert (told["isExact"], "Writing to notes.txt" in told["description"]) == (False, True)
        asks.door_asked(replace(ASKED, id="gemini-2", command="Writing to notes.txt"))
        await until(lambda: len(daemon.open) == 2, "the other is told")
        assert (asks.digest_of("gemini-1"), asks.digest_of("gemini-2")) == ("", OTHER.digest)
        assert [fields["canAllow"] for fields in daemon.asked if fields["requestId"] == "gemini-1"] == [True, False]

    play(scene)


def test_a_long_command_is_known_by_the_rows_below_its_title() -> None:
    rows = DIALOG.text.replace("Shell  rm -rf build", "Shell  rm -rf…").replace("\nrm -rf build", "\nrm -rf \nbuild", 1)
    cut = replace(DIALOG, subject="rm -rf…", text=rows)

    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(cut, has_two_views=True)
        asks.door_asked(ASKED)
        assert [(fields["requestId"], fields["isExact"]) for fields in daemon.asked] == [("gemini-1", True)]

    play(scene)


def test_a_dialog_that_is_open_though_the_door_says_it_is_over_is_asked_again() -> None:
    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(DIALOG, has_two_views=True)
        asks.door_asked(ASKED)
        asks.door_resolved("gemini-1", Resolution.ALLOWED, "person")
        assert not daemon.open
        await until(lambda: daemon.open == {"screen"}, "the screen is believed")
        asks.saw(None, has_two_views=True)
        await until(lambda: not daemon.open, "it is over, and no blink")

    play(scene)


def test_a_door_that_goes_leaves_what_is_on_the_screen() -> None:
    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(DIALOG, has_two_views=True)
        asks.door_asked(ASKED)
        asks.door_asked(replace(ASKED, id="gemini-2", command="make"))
        await until(lambda: len(daemon.open) == 2, "both are told")
        asks.door_gone()
        assert daemon.open == {"gemini-1"}
        assert (asks.door_id_of("gemini-1"), asks.digest_of("gemini-1")) == ("", DIALOG.digest)
        asks.saw(None, has_two_views=False)
        await until(lambda: not daemon.open, "it is over, and no blink")

    play(scene)


def test_without_a_second_view_nothing_is_waited_for() -> None:
    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(QUESTION, has_two_views=False)
        (told,) = daemon.asked
        assert (told["questionId"], told["question"]) == ("screen", "Which database should we use?")
        asks.saw(None, has_two_views=False)
        asks.door_asked(ASKED)
        assert "gemini-1" in daemon.open
        await until(lambda: daemon.open == {"gemini-1"}, "the first is over, and no blink")

    play(scene)


def test_an_answer_that_fails_leaves_it_open() -> None:
    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        asks.saw(DIALOG, has_two_views=True)
        asks.door_asked(ASKED)
        with pytest.raises(NotOpen), asks.answering("gemini-1", "approve"):
            raise NotOpen
        assert daemon.open == {"gemini-1"}

        def answer_too_late() -> None:
            with asks.answering("gemini-1", "approve"):
                asks.door_resolved("gemini-1", Resolution.DENIED, "person")
                raise NotOpen

        with pytest.raises(NotOpen):
            answer_too_late()
        assert daemon.resolved == [("gemini-1", "denied", "person")]

    play(scene)


def test_each_time_it_is_another_request() -> None:
    """Of two agents that ask the same, and of one that asks the same again: whoever answers one has not answered the other."""

    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        del asks
        reporter = Reporter(RelayLink(daemon, lambda: daemon))  # type: ignore[arg-type, return-value]
        for _ in range(2):
            agent = OpenRequests(reporter, profile_of("gemini"))
            for _ in range(2):
                agent.saw(DIALOG, has_two_views=False)
                agent.saw(None, has_two_views=False)
                await until(lambda: not daemon.open, "it is over")
        ids = [fields["requestId"] for fields in daemon.asked]
        assert len(set(ids)) == 4
        assert [id_.rpartition("-")[0] for id_ in ids] == ["screen"] * 4

    play(scene)


def test_a_screen_that_blinks_keeps_its_request() -> None:
    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        for seen in (DIALOG, None, DIALOG, None, DIALOG):
            asks.saw(seen, has_two_views=False)
        await asyncio.sleep(0.3)  # longer than a blink
        assert (len(daemon.asked), daemon.resolved) == (1, [])
        asks.saw(OTHER, has_two_views=False)  # another one ends it at once
        assert daemon.resolved == [("screen", "gone", "person")]

    play(scene)


def test_what_cannot_be_answered_from_elsewhere_says_so_from_the_start() -> None:
    async def scene(asks: OpenRequests, daemon: Daemon) -> None:
        for row, can_allow in (("Permission requested: rm -rf build", False), ("Allow rm? (y/n)", True)):
            dialog = find_dialog(profile_of("gemini"), screen_of_text(row).lines)
            asks.saw(dialog, has_two_views=False)
            assert (daemon.asked[-1]["canAllow"], "rm" in daemon.asked[-1]["command"]) == (can_allow, True)

    play(scene)
