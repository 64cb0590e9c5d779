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
    "test_long_message_in": "so does one of 60 lines, word for word",
    "test_read_evidence": "evidence that it was read",
    "test_answer_out": "a one-line reply arrives, once",
    "test_fenced_answer_out": "a reply of several lines",
    "test_open_dialog": "an open permission dialog is left alone; messages wait and arrive in order",
    "test_half_written_draft": "a half-written draft is left alone; the message arrives after it",
    "test_while_it_works": "sent while it works: the reply is not cut off; the messages arrive after it, in order",
    "test_allowed_on_the_screen": "a permission is granted from outside, once and not forever",
    "test_refused_on_the_screen": "a permission is denied from outside",
    "test_another_dialog_is_left_alone": "a dialog other than the one decided on is left alone",
}
DOORS = {
    "test_door_idle": "idle: a turn begins at once, and the reply comes back",
    "test_door_busy": "working: the message arrives without cutting off the reply",
    "test_door_dialog": "dialog open: it is left alone; messages wait and arrive in order",
    "test_door_draft": "a half-written draft stays where it is",
    "test_door_burst": "20 at once: all arrive, in order, each once, each read",
    "test_door_read": "evidence that it was read",
    "test_door_approve": "a permission is granted from outside",
    "test_door_deny": "a permission is denied from outside",
    "test_door_person_first": "the person at the terminal answers first: a later answer from outside is refused",
    "test_door_http": "the same over HTTP, 409 when the dialog is gone",
    "test_door_daemon_dies": "the daemon is killed and restarted: nothing is lost, nothing arrives twice",
    "test_door_wrapper_dies": "the wrapper is killed and restarted: the same",
    "test_door_removed": "the door disappears in the middle of a turn: the same",
}
TOOLS = {
    "test_tool_sends": "after `agent-relay init` its model calls `relay_send`: the message comes from the agent, once",
    "test_tool_asks": "it calls `relay_ask` and is given the answer",
}
ACP = {
    "test_acp_read": "a message is a prompt, read by its turn, and its reply arrives, once",
    "test_acp_approve": "a permission is granted from outside",
    "test_acp_deny": "a permission is denied from outside",
    "test_acp_cancelled": "a turn is cancelled; what waits goes on",
    "test_acp_agent_dies": "the agent is killed: it is started again, nothing arrives twice",
}
OWN = {
    "test_claude_question": "a question is answered from outside",
    "test_claude_reason": "the reason for a denial is shown",
    "test_claude_own_tool": "the agent replies with its own `SendMessage`",
    "test_claude_refused": "the user's `crossSessionInbound: refuse` is respected, and the sender is told",
    "test_claude_stop_hook": "the stop hook is the next door, and the program's end is noticed",
    "test_claude_tools": "its tool calls are reported by its hooks and its session file, each once",
    "test_claude_bypass": "with `--dangerously-skip-permissions` the inbox is not used, and no setting is changed",
    "test_codex_next_conversation": "messages follow the person into the next conversation",
    "test_codex_broken_turn": "the queue continues after a person interrupts a turn",
    "test_codex_file_change": "a file change is denied and approved from outside",
    "test_codex_server_ends": "the server ends with the program in the terminal",
    "test_codex_own_name": "programs it runs know the agent's name",
    "test_codex_queue": "`codex queue` is the next door",
    "test_codex_hooks_trusted": "the person trusts its hooks once; this still holds at the next start",
    "test_codex_hooks_resumed": "a hook reports which conversation was resumed, and `codex queue` reaches it",
    "test_codex_stop_hook": "the stop hook delivers 20 at the end of a turn, in order, each once, each read",
    "test_codex_stop_hook_broken_off": "what waits for the stop hook when a person interrupts the turn is returned to the queue",
    "test_codex_hook_permission": "a hook reports a permission in its exact words, and the person answers it",
    "test_codex_hooks_gone": "missing hooks block nothing",
    "test_codex_hooks_untrusted": "untrusted hooks do not run, and a note says how to approve them",
    "test_codex_hooks_review": "while it asks about hooks, nothing is typed and nobody outside can answer",
    "test_codex_hook_request": "the hook and the dialog are one request, approved from outside by keys",
    "test_codex_stop_hook_alone": "without `codex queue`, messages use the stop hook while it works, and are typed otherwise",
    "test_gemini_introduction": "it is introduced with the first prompt, and accepts nothing while idle",
    "test_gemini_brackets": "angle brackets arrive unchanged, at the end of the turn",
    "test_gemini_dialog": "the hooks report a dialog, and the person answers it",
    "test_gemini_cancelled": "what was read in an interrupted turn is delivered again",
    "test_gemini_question": "a question is reported in full",
    "test_gemini_file_change": "a file change is reported",
    "test_gemini_veto": "a tool is denied before its dialog, if that is turned on",
    "test_gemini_clear": "the session is found again after `/clear`",
    "test_gemini_hooks_gone": "missing hooks block nothing",
    "test_gemini_not_linked": "without the extension there is no door; a note says how to get one",
    "test_opencode_introduction": "it is introduced with its instructions",
    "test_opencode_home": "a session is started if none is shown",
    "test_opencode_questions": "two questions in one dialog are answered from outside",
    "test_opencode_reason": "the reason for a denial reaches the agent",
    "test_opencode_stopped": "a person stops a turn: waiting messages keep waiting",
    "test_opencode_shown_session": "messages go into the session that is shown",
    "test_opencode_end": "the program's end is reported once",
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
    unknown = set(cells) - {*TYPED, *DOORS, *TOOLS, *ACP, *OWN}
    if unknown:
        raise KeyError(f"{', '.join(sorted(unknown))}: not named in {Path(__file__).name}")
    parts = [
        ("### Typed into the terminal", _table(TYPED, cells, versions)),
        ("### Through their own doors", _table(DOORS, cells, versions)),
        ("### With the relay's tools (MCP)", _table(TOOLS, cells, versions)),
        ("### By the Agent Client Protocol", _table(ACP, cells, versions)),
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
