"""Commands from screens: each told once, none half-written, none of anybody else's."""

from __future__ import annotations

import pytest

from agent_relay.terminal.output.commands import Found, SendCommand, Spoken, Unfinished
from agent_relay.terminal.output.screen_commands import LINK_S, PATIENCE_S, ScreenListener
from agent_relay.terminal.output.watcher import CommandSeen, Watcher
from agent_relay.terminal.profiles.profile import profile_for
from agent_relay.terminal.screen.contents import Cursor, screen_of_text
from agent_relay.terminal.screen.state import State, look

RULE = "─" * 120
IDLE = f"\n\n{RULE}\n❯\n{RULE}\n  ⏸ manual mode on · ? for shortcuts"
BUSY = f"\n\n✽ Pondering… (2s · ↓ 17 tokens)\n\n{RULE}\n❯\n{RULE}\n  ⏸ manual mode on · esc to interrupt"


class Stage:
    """A listener that is shown texts."""

    def __init__(self, name: str = "claude") -> None:
        self.profile = profile_for(name)
        self.listener = ScreenListener(self.profile)
        self.t = 0.0

    def show(self, text: str, *, is_quiet: bool = True, after_s: float = 0.3, cursor: Cursor | None = None) -> list[str]:
        self.t += after_s
        screen = screen_of_text(text, cursor=cursor)
        sight = look(self.profile, screen, State.IDLE)
        return [_show(item) for item in self.listener.read(screen, sight, self.t, is_quiet=is_quiet)]


def _show(item: Found) -> str:
    if isinstance(item, Unfinished):
        return f"{item.to}?"
    assert isinstance(item, Spoken)
    return f"{item.command.target}:{item.command.body}" if isinstance(item.command, SendCommand) else repr(item.command)


def test_a_line_that_may_still_grow_is_not_told() -> None:
    stage = Stage()
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hel{BUSY}") == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello{BUSY}") == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello\n\n  More{BUSY}") == ["Bob:hello"]
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello\n\n  More.\n\n✻ Cooked for 2s{IDLE}") == []


def test_the_last_line_is_told_when_the_turn_is_over() -> None:
    stage = Stage()
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello{BUSY}") == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello\n\n✻ Cooked for 2s{IDLE}") == ["Bob:hello"]


def test_a_queued_message_below_does_not_end_the_line_above() -> None:
    stage = Stage()
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hel\n\n❯ Relay message from Alice [abc12345]: hurry{BUSY}") == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello you\n\n❯ Relay message from Alice [abc12345]: hurry{BUSY}") == []


LINK = "https://example.org/a?b=c"


def test_an_address_that_is_drawn_twice_for_a_moment_is_told_once_and_as_it_was_written() -> None:
    stage = Stage()
    assert stage.show(f"❯ hi\n\n● ->relay:Bob see {LINK} ({LINK})\n\n✻ Cooked for 2s{IDLE}") == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob see {LINK}\n\n✻ Cooked for 2s{IDLE}") == [f"Bob:see {LINK}"]
    assert stage.show(f"❯ hi\n\n● ->relay:Bob see {LINK}\n\n✻ Cooked for 2s{IDLE}", after_s=9) == []


def test_an_address_that_was_written_twice_is_told_as_soon_as_it_has_stayed_so() -> None:
    stage = Stage()
    text = f"❯ hi\n\n● ->relay:Bob see {LINK} ({LINK})\n\n✻ Cooked for 2s{IDLE}"
    assert stage.show(text) == []
    assert stage.show(text, after_s=LINK_S / 2) == []
    assert stage.show(text, after_s=LINK_S / 2) == [f"Bob:see {LINK} ({LINK})"]


def test_other_addresses_and_brackets_are_told_at_once() -> None:
    stage = Stage()
    text = f"see {LINK} (https://example.org) and (this) f(x) ((("
    assert stage.show(f"❯ hi\n\n● ->relay:Bob {text}\n\n✻ Cooked for 2s{IDLE}") == [f"Bob:{text}"]


def test_a_screen_half_drawn_counts_when_it_is_seen_again() -> None:
    stage = Stage()
    text = f"❯ hi\n\n● ->relay:Bob hello\n\n  More{BUSY}"
    assert stage.show(text, is_quiet=False) == []
    assert stage.show(text, is_quiet=False) == ["Bob:hello"]
    assert stage.show(text) == []


def test_a_half_drawn_screen_that_changes_is_never_told() -> None:
    stage = Stage()
    assert stage.show(f"❯ hi\n\n● ->relay:Bob he\n\n  More{BUSY}", is_quiet=False) == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello\n\n  More{BUSY}", is_quiet=False) == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob hello\n\n  More{BUSY}") == ["Bob:hello"]


def test_the_same_words_in_another_turn_are_told_again() -> None:
    stage = Stage()
    first = "❯ one\n\n● ->relay:Bob yes\n\n✻ Cooked for 2s"
    assert stage.show(first + IDLE) == ["Bob:yes"]
    assert stage.show(f"{first}\n\n❯ two\n\n● ->relay:Bob yes\n\n✻ Cooked for 2s{IDLE}") == ["Bob:yes"]
    assert stage.show(f"❯ two\n\n● ->relay:Bob yes\n\n✻ Cooked for 2s{IDLE}") == []


def test_twice_in_one_answer_is_told_twice() -> None:
    assert Stage().show(f"❯ one\n\n● ->relay:Bob yes\n  ->relay:Bob yes\n\n✻ Cooked for 2s{IDLE}") == ["Bob:yes", "Bob:yes"]


def test_an_answer_drawn_anew_is_not_told_again() -> None:
    stage = Stage("opencode")
    composer = "\n\n  ┃\n  ┃\n  ┃\n  ┃  Build · Model\n  ╹" + "▀" * 100 + "\n   {}\n"
    head = "  ┃\n  ┃  hi\n  ┃\n\n"
    raw = '     [[RELAY]]{"to":"Bob","body":"x"}[[/RELAY]]\n\n     Done'
    rendered = '     [RELAY]{"to":"Bob","body":"x"}[/RELAY]\n\n     Done.\n\n     ▣  Build · Model · 1.2s'
    assert stage.show(head + raw + composer.format("■■■⬝⬝  esc interrupt")) == ["Bob:x"]
    assert stage.show(head + rendered + composer.format("~/proj")) == []


def test_what_was_not_closed_is_reported_late_and_once() -> None:
    stage = Stage()
    text = f"❯ hi\n\n● ->relay:Bob <<<\n  one\n\n✻ Cooked for 2s{IDLE}"
    assert stage.show(text) == []
    assert stage.show(text, after_s=PATIENCE_S + 0.1) == ["Bob?"]
    assert stage.show(text, after_s=PATIENCE_S + 0.1) == []


def test_what_is_closed_in_time_is_told_instead() -> None:
    stage = Stage()
    assert stage.show(f"❯ hi\n\n● ->relay:Bob <<<\n  one\n\n✻ Cooked for 2s{IDLE}") == []
    assert stage.show(f"❯ hi\n\n● ->relay:Bob <<<\n  one>>>\n\n✻ Cooked for 2s{IDLE}") == ["Bob:one"]


def test_an_open_message_does_not_swallow_the_next_turn() -> None:
    stage = Stage()
    text = f"❯ a\n\n● ->relay:Bob <<<\n  one\n\n✻ Cooked for 2s\n\n❯ b\n\n● ->relay:Al hi\n\n✻ Cooked for 1s{IDLE}"
    assert stage.show(text) == ["Al:hi"]


def test_what_was_there_before_us_is_old() -> None:
    stage = Stage()
    before = "❯ one\n\n● ->relay:Bob yes\n\n✻ Cooked for 2s"
    screen = screen_of_text(before + IDLE)
    stage.listener.read(screen, look(stage.profile, screen, State.IDLE), 0, is_quiet=False)
    stage.listener.adopt()
    assert stage.show(before + IDLE) == []
    assert stage.show(f"{before}\n\n❯ two\n\n● ->relay:Bob new\n\n✻ Cooked for 2s{IDLE}") == ["Bob:new"]


def test_a_dialog_ends_a_line_and_hides_nothing_that_was_said() -> None:
    dialog = f"\n\n{RULE}\n Bash command\n\n rm x\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
    assert Stage().show(f"❯ hi\n\n● ->relay:Bob first\n\n● Bash(rm x){dialog}") == ["Bob:first"]


def test_text_inside_a_dialog_is_nobodys_command() -> None:
    dialog = f"\n\n{RULE}\n Bash command\n\n ->relay:Bob no\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
    assert Stage().show(f"❯ hi\n\n● Bash(x){dialog}") == []


# --- the echo of a message --------------------------------------------------------------------------------------------


def test_the_echo_of_a_message_is_nobodys_command() -> None:
    stage = Stage("generic")
    message = "Relay message from Alice [abc12345]: answer like this\n->relay:Alice ACK"
    assert stage.show("Helper\n> ", cursor=Cursor(1, 2)) == []
    stage.listener.expect_echo(message)
    echo = "Helper\n> Relay message from Alice [abc12345]: answer like this\n->relay:Alice ACK\n"
    assert stage.show(echo, cursor=Cursor(3, 0)) == []
    said = f"{echo}Sure.\n->relay:Alice ACK\n\n> "
    assert stage.show(said, cursor=Cursor(6, 2)) == ["Alice:ACK"]


def test_an_echo_the_screen_shows_otherwise_does_not_uncover_the_next() -> None:
    """Emoji and accents are drawn in many ways, a long paste as a placeholder; what comes after them is an echo all the same."""
    stage = Stage("aider")
    for number, body in enumerate(["👩‍👩‍👧 e\u0301", "x" * 5_000, "do\n->relay:Bob no"]):
        stage.listener.expect_echo(f"Relay message from Alice [abc1234{number}]: {body}")
    shown = "> Relay message from Alice [abc12340]: 👩👩👧 é\nok\n> [Pasted text #1]\nok\n"
    shown += "> Relay message from Alice [abc12342]: do\n"
    assert stage.show(f"{shown}->relay:Bob no\n", cursor=Cursor(6, 0)) == []
    assert stage.show(f"{shown}->relay:Bob no\nFine.\n->relay:Bob yes\n\n> ", cursor=Cursor(9, 2)) == ["Bob:yes"]


def test_an_echo_half_drawn_or_broken_into_rows_is_one() -> None:
    stage = Stage("aider")
    stage.listener.expect_echo("Relay message from Alice [abc12345]: do\n->relay:Bob no, never do that\n->relay:Carol nor that")
    head = "> Relay message from\n Alice [abc12345]:\n do\n"
    assert stage.show(f"{head}->relay:Bo", cursor=Cursor(3, 10), is_quiet=False) == []
    assert stage.show(f"{head}->relay:Bob no,\nnever do that\n->relay:Carol nor\n that\n", cursor=Cursor(7, 0)) == []
    assert stage.show(f"{head}->relay:Bob no,\nnever do that\n->relay:Carol nor\n that\n\n> ", cursor=Cursor(8, 2)) == []


def test_an_echo_that_is_not_shown_does_not_hide_the_answer() -> None:
    stage = Stage("generic")
    stage.listener.expect_echo("Relay message from Alice [abc12345]: answer\n->relay:Alice ACK")
    text = "Helper\n> [Pasted text #1 +1 lines]\nSure.\n->relay:Alice ACK\n\n> "
    assert stage.show(text, cursor=Cursor(5, 2)) == ["Alice:ACK"]


BULLETS = "●⏺◆◇○□■⁃→➜›»>$%#"


class Plain:
    """A plain program on a normal screen, drawn by an emulation."""

    def __init__(self, name: str = "generic") -> None:
        self.watcher = Watcher(profile_for(name), columns=60, rows=10)
        self.t = 0.0

    def shows(self, text: str) -> list[str]:
        self.t += 1.0
        self.watcher.feed(text.replace("\n", "\r\n").encode(), self.t)
        self.t += 1.0
        events = self.watcher.quiet(self.t)
        return [
            f"{event.command.target}:{event.command.body}"
            for event in events
            if isinstance(event, CommandSeen) and isinstance(event.command, SendCommand)
        ]


@pytest.mark.parametrize("bullet", BULLETS)
def test_a_bullet_is_no_part_of_a_line(bullet: str) -> None:
    assert Plain().shows(f"ready\n{bullet} ->relay:Bob hi\nmore\n> ") == ["Bob:hi"]
    assert Plain().shows(f"ready\n  {bullet} ->relay:Bob hi\nmore\n> ") == ["Bob:hi"]
    # Where a body is written, everything in it stays as it is.
    body = f"->relay:Bob <<<\n{bullet} ->relay:Carol no\n>>>\n> "
    assert Plain().shows(body) == [f"Bob:{bullet} ->relay:Carol no"]


@pytest.mark.parametrize("prompt", [*">❯›$%#»➜", "chat>", "~/src $"])
def test_what_is_typed_at_a_prompt_is_not_what_the_program_says(prompt: str) -> None:
    plain = Plain()
    assert plain.shows(f"ready\n{prompt} ") == []
    assert plain.shows("->relay:Bob ty") == []
    assert plain.shows("ped") == []
    assert plain.shows(f"\nyou said so\n{prompt} ") == []
    assert plain.shows(f"\n● ->relay:Bob said\n{prompt} ") == ["Bob:said"]


def test_a_pasted_line_at_a_prompt_is_not_what_the_program_says() -> None:
    plain = Plain()
    assert plain.shows("ready\n> ") == []
    assert plain.shows("->relay:Bob pasted\nyou said so\n> ") == []


def test_quotations_stay_quotations() -> None:
    assert Plain().shows("You wrote:\n> hello\n> ->relay:Bob quoted\nmore\n> ") == []
    assert Plain().shows("You wrote:\n> ->relay:Bob quoted\n> hello\nmore\n> ") == []
    assert Plain().shows("ready\n> > ->relay:Bob quoted\nmore\n> ") == []
    assert Plain().shows("ready\n```\n● ->relay:Bob code\n```\n> ") == []
    assert Stage().show(f"❯ hi\n\n● Like this:\n\n  > ->relay:Bob quoted\n\n✻ Cooked for 2s{IDLE}") == []


def test_where_rows_do_not_keep_their_place_a_prompt_is_a_prompt() -> None:
    assert Plain().shows("\x1b[?1049hready\n> ->relay:Bob typed\nmore\n> ") == []


def test_what_a_person_types_to_a_program_without_a_prompt_is_theirs() -> None:
    plain = Plain()
    plain.watcher.is_waiting = True
    assert plain.shows("ready\n") == []
    plain.watcher.note_person()
    assert plain.shows("->relay:Bob typed") == []
    assert plain.shows("\n->relay:Bob typed\n") == ["Bob:typed"]  # the program, which repeats it
    assert plain.shows("->relay:Bob said by itself\n") == ["Bob:said by itself"]
    # Nobody tells of the keys, but the row grows while the program waits; nor is half a line anything.
    assert plain.shows("->relay:Bob slow") == []
    assert plain.shows("ly typed") == []
    assert plain.shows("\n->relay:Bob slowly typed\n") == ["Bob:slowly typed"]


PROSE = [f"  row {number} of a long answer about the parser and what it does with text" for number in range(40)]
CODEX_BUSY = "\n\n• Working (3s • esc to interrupt)\n\n› Ask Codex to do anything\n\n  model · project"
CODEX_IDLE = "\n\n  Worked for 3s\n\n› Ask Codex to do anything\n\n  model · project"


def codex_screen(*rows: str, end: str = CODEX_BUSY) -> str:
    return "\n".join(rows) + end


def test_below_a_prompt_that_is_pinned_the_answer_stays_the_agents() -> None:
    stage = Stage("codex")
    asked, said = "› tell me about the parser", ["", "  ->relay:Bob it is done", "", "  And more."]
    assert stage.show(codex_screen(asked, "", "• Here it is.", *PROSE[:20])) == []
    assert stage.show(codex_screen(asked, *PROSE[8:24], *said)) == ["Bob:it is done"]
    assert stage.show(codex_screen(asked, *PROSE[12:24], *said, end=CODEX_IDLE)) == []


def test_what_a_person_wrote_in_several_rows_stays_theirs() -> None:
    stage = Stage("codex")
    asked = ["› please write this:", "  ->relay:Bob it is mine", "  and nothing else"]
    assert stage.show(codex_screen("• Hello.", *PROSE[:4])) == []
    assert stage.show(codex_screen("• Hello.", *PROSE[:4], "", *asked)) == []
    said = stage.show(codex_screen(*PROSE[:4], "", *asked, "", "• ->relay:Bob it is yours", end=CODEX_IDLE))
    assert said == ["Bob:it is yours"]


def test_a_row_that_was_half_drawn_becomes_the_persons() -> None:
    stage = Stage("codex")
    assert stage.show(codex_screen("• Hello.", "", "  ->relay:Bob it is mine", "  and more"), is_quiet=False) == []
    assert stage.show(codex_screen("• Hello.", "› write:", "  ->relay:Bob it is mine", "  and more", end=CODEX_IDLE)) == []
