"""The tables of what was proven with which CLI, for docs/real-clis.md.

They are written by a whole run (`make test-real-clis`) and say nothing that changes from run to run unless the facts did: no
times, no dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

FAILED, NO_TEST = "**no**", "–"

TYPED = {
    "test_message_in": "a message reaches the model, once",
    "test_long_message_in": "one of 60 lines too, word for word",
    "test_read_evidence": "known to be read by",
    "test_answer_out": "an answer on one line arrives, once",
    "test_fenced_answer_out": "an answer of several lines",
    "test_open_dialog": "an open permission dialog is left alone, messages wait and come in order",
    "test_half_written_draft": "a half-written draft is left alone, the message comes after it",
    "test_while_it_works": "sent while it works: the answer is not cut off, the messages come after it, in order",
    "test_allowed_on_the_screen": "a permission is given from outside, once and not for ever",
    "test_refused_on_the_screen": "a permission is refused from outside",
    "test_another_dialog_is_left_alone": "a dialog that is not the one that was asked about is left alone",
}
DOORS = {
    "test_door_idle": "idle: a turn begins at once, the answer comes back",
    "test_door_busy": "working: the message comes without cutting the answer off",
    "test_door_dialog": "a dialog open: it is left alone, messages wait and come in order",
    "test_door_draft": "a half-written draft stays where it is",
    "test_door_burst": "20 at once: all, in order, each once, each read",
    "test_door_read": "known to be read by",
    "test_door_approve": "a permission is given from outside",
    "test_door_deny": "a permission is refused from outside",
    "test_door_person_first": "the person at the terminal is first: a later answer from outside is turned away",
    "test_door_http": "the same over HTTP, 409 when the dialog is gone",
    "test_door_daemon_dies": "the daemon is killed and started again: nothing is lost, nothing comes twice",
    "test_door_wrapper_dies": "the wrapper is killed and started again: the same",
    "test_door_removed": "the door is taken away in the middle of a turn: the same",
}
OWN = {
    "test_claude_question": "a question is answered from outside",
    "test_claude_reason": "the reason of a refusal is shown",
    "test_claude_own_tool": "the agent answers with its own `SendMessage`",
    "test_claude_refused": "`crossSessionInbound: refuse` of the user's is kept to, and the sender is told",
    "test_claude_stop_hook": "the stop hook is the next door, and the end of the program is noticed",
    "test_claude_tools": "its tools are told by its hooks and its session file, each once",
    "test_claude_bypass": "with `--dangerously-skip-permissions` the inbox is not used, and nothing is set to change that",
    "test_codex_next_conversation": "messages follow the person into the next conversation",
    "test_codex_broken_turn": "the queue goes on after a turn that a person broke off",
    "test_codex_file_change": "a change of a file is refused and permitted from outside",
    "test_codex_server_ends": "the server ends with the terminal's program",
    "test_codex_own_name": "what it runs has the agent's own name",
    "test_codex_queue": "`codex queue` is the next door",
    "test_codex_hooks_trusted": "its hooks are trusted once by the person, and hold for the next start",
    "test_codex_hooks_resumed": "a hook tells which conversation was taken up, and `codex queue` reaches it",
    "test_codex_stop_hook": "the stop hook hands over 20 at the end of a turn, in order, each once, each read",
    "test_codex_stop_hook_broken_off": "what waits for the stop hook when a person breaks the turn off is given back",
    "test_codex_hook_permission": "a hook tells a permission in its exact words, and the person answers it",
    "test_codex_hooks_gone": "hooks that lead nowhere block nothing",
    "test_codex_hooks_untrusted": "hooks that nobody trusts are not run, and a note says how to let them in",
    "test_codex_hooks_review": "while it asks about hooks nothing is typed, and nobody outside can answer",
    "test_codex_hook_request": "the hook and the dialog are one request, permitted from outside by keys",
    "test_codex_stop_hook_alone": "without `codex queue` messages take the stop hook while it works, and are typed else",
    "test_gemini_introduction": "it is introduced with the first prompt, and takes nothing while it is idle",
    "test_gemini_brackets": "angle brackets come word for word, at the end of the turn",
    "test_gemini_dialog": "the hooks tell of a dialog, and the person answers it",
    "test_gemini_cancelled": "what was read in a turn that was broken off is given again",
    "test_gemini_question": "a question is told whole",
    "test_gemini_file_change": "a change of a file is told",
    "test_gemini_veto": "a tool is refused before its dialog, where that is switched on",
    "test_gemini_clear": "the session is found again after `/clear`",
    "test_gemini_hooks_gone": "hooks that lead nowhere block nothing",
    "test_gemini_not_linked": "without the extension there is no door, and a note how to get one",
    "test_opencode_introduction": "it is introduced with its instructions",
    "test_opencode_home": "a session is begun where none is shown",
    "test_opencode_questions": "two questions in one dialog are answered from outside",
    "test_opencode_reason": "the reason of a refusal reaches the agent",
    "test_opencode_stopped": "a turn that a person stops: what waited waits on",
    "test_opencode_shown_session": "messages go into the session that is shown",
    "test_opencode_end": "the end of the program is told once",
    "test_claude_and_codex_talk": "claude and codex talk to each other, each message once",
}
_BLOCK = re.compile(r"(<!-- generated: real-clis -->\n).*?(<!-- end of real-clis -->)", re.DOTALL)
_TEST = re.compile(r"::(?P<test>\w+)(?:\[(?P<cli>[\w-]+)\])?$")
Cells = Mapping[str, Mapping[str, str]]  # by test, then by CLI


class Result(NamedTuple):
    has_passed: bool
    note: str = ""  # what a test found out, beyond yes and no

    @property
    def cell(self) -> str:
        return (self.note or "yes") if self.has_passed else FAILED


def render(results: Mapping[str, Result], versions: Mapping[str, str]) -> str:
    """`results` by the test's id. Raises KeyError for a test that has no name here."""
    cells: dict[str, dict[str, str]] = {}
    for test_id, result in results.items():
        match = _TEST.search(test_id)
        assert match is not None, test_id
        cells.setdefault(match["test"], {})[match["cli"] or ""] = result.cell
    unknown = set(cells) - {*TYPED, *DOORS, *OWN}
    if unknown:
        raise KeyError(f"{', '.join(sorted(unknown))}: not named in {Path(__file__).name}")
    parts = [
        ("### Typed into the terminal", _table(TYPED, cells, versions)),
        ("### Through their own doors", _table(DOORS, cells, versions)),
        ("### Of one alone", _list(cells)),
    ]
    return "\n".join(f"{title}\n\n{text}" for title, text in parts if text)


def _table(names: Mapping[str, str], cells: Cells, versions: Mapping[str, str]) -> str:
    tests = [test for test in names if test in cells]
    clis = [cli for cli in versions if any(cli in cells[test] for test in tests)]
    head = ["", *(f"{cli} {versions[cli]}" for cli in clis)]
    rows = [[names[test], *(cells[test].get(cli, NO_TEST) for cli in clis)] for test in tests]
    return "".join([_row(head), "|---" * len(head) + "|\n", *map(_row, rows)]) if rows else ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def _list(cells: Cells) -> str:
    found = [(cli, OWN[test], cell) for test in OWN if test in cells for cli, cell in cells[test].items()]
    return "".join(f"- {cli + ': ' if cli else ''}{what}: {cell}\n" for cli, what, cell in found)


def write(page: Path, table: str) -> None:
    text = page.read_text("utf-8")
    if not _BLOCK.search(text):
        raise ValueError(f"{page} has no place for the table.")
    page.write_text(_BLOCK.sub(lambda match: match[1] + table + match[2], text), "utf-8")
