"""Requests of the agent to a person, one each, whoever sees it: the door tells what is asked, the screen how to answer.

A door that cannot answer by itself and a dialog on the screen are two views of one request. It is told once, with the door's
words and the screen's options, after a moment in which the other view may come; under one id, which stays. Where the
screen shows other words than the door, they are told too, and are not taken for exact: nobody decides on one thing and
answers another. The screen goes on when the door is silent, and the other way round.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from agent_relay.protocol.requests import QUESTION, AgentRequest, PermissionRequest, QuestionRequest
from agent_relay.terminal.doors.door import Decision, Resolution
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests.choices import can_allow, find_wider
from agent_relay.terminal.screen.dialogs import OpenDialog, looks_of

SCREEN_REQUEST = "screen"  # begins the ids of requests that were found on the screen
BLINK_S = 0.5  # a dialog that is not to be seen for so long may be a screen half drawn
OTHER_VIEW_S = 1.5  # a hook takes 50 ms, a drawing a little more: so long a request waits for its other view
OUTCOME_S = 2.0  # after its dialog has closed: so long the door may take to say how
MAX_CONFIRMATIONS = 5  # open at once: a screen full of such lines must not hide what else is asked
STALE_S = 5.0  # a dialog that is still there so long after the door said it is over is open, whatever the door says
PERSON, OURS = "person", "door"
_ANSWERS = {"approve": Resolution.ALLOWED, "deny": Resolution.DENIED, "answer": Resolution.ANSWERED}
_log = logging.getLogger("agent_relay.terminal")


def _make_id(beginning: str) -> str:
    return f"{beginning}-{secrets.token_hex(4)}"


class _Entry:
    """One request. It has at least one of the two views."""

    def __init__(self, id_: str, door: AgentRequest | None, dialog: OpenDialog | None, now: float, profile: Profile) -> None:
        self.id = id_
        self._profile = profile
        self.door = door
        self.dialog = dialog
        self.since = now
        self.told: AgentRequest | None = None
        self.closed_at: float | None = None  # since when its dialog is not on the screen any more
        self.is_answered = False  # by us, on the screen, right now
        self.outcome: tuple[Resolution, str] | None = None  # what the door said of it meanwhile

    def compose(self) -> AgentRequest:
        found = self.door
        if self.dialog is not None:
            shown = request_of(self._profile, self.dialog)
            found = shown if self.door is None else _combine(self.door, shown, self.dialog)
        assert found is not None
        return replace(found, id=self.id)


class OpenRequests:
    """`make_id` makes an id that nobody had before, and that begins with the given one: two agents may ask the same, and one
    agent the same again, and each time it is another request."""

    def __init__(self, reporter: Reporter, profile: Profile, make_id: Callable[[str], str] = _make_id) -> None:
        self._reporter = reporter
        self._make_id = make_id
        self._profile = profile
        self._entries: list[_Entry] = []
        self._dialog: OpenDialog | None = None
        self._shown_at = 0.0  # since when it is on the screen
        self._has_two_views = False
        self._over: tuple[str, float] | None = None  # digest of a dialog that the door said is over, and when
        self._timer: asyncio.TimerHandle | None = None

    # --- what is seen and heard ------------------------------------------------------------------------------------------

    def saw(self, dialog: OpenDialog | None, *, has_two_views: bool) -> None:
        """Takes note of what the screen shows. `has_two_views`: a door is open that may tell the same."""
        if dialog is not None and (self._dialog is None or self._dialog.digest != dialog.digest):
            self._shown_at = _now()
        self._dialog, self._has_two_views = dialog, has_two_views
        self._settle()

    def door_asked(self, request: AgentRequest) -> None:
        self._entries.append(_Entry(self._make_id(request.id), request, None, _now(), self._profile))
        self._settle()

    def door_resolved(self, request_id: str, resolution: Resolution, by: str) -> None:
        for entry in [entry for entry in self._entries if entry.door is not None and entry.door.id == request_id]:
            if entry.is_answered:
                entry.outcome = (resolution, by)
                continue
            if entry.dialog is not None and entry.closed_at is None:
                self._over = (entry.dialog.digest, _now())
            self._end(entry, resolution, by)
        self._settle()

    def door_gone(self) -> None:
        """Nobody will say any more what became of what it asked; a dialog that is on the screen still asks."""
        for entry in list(self._entries):
            entry.door = None
            if entry.dialog is None:
                self._end(entry, Resolution.GONE, "")
        self._over = None
        self._settle()

    # --- answers ---------------------------------------------------------------------------------------------------------

    def digest_of(self, request_id: str) -> str:
        """Of the dialog on the screen by which it can be answered; empty where there is none."""
        entry = self._find(request_id)
        return entry.dialog.digest if entry is not None and entry.dialog is not None else ""

    def door_id_of(self, request_id: str) -> str:
        """As the door knows it; empty where it does not."""
        entry = self._find(request_id)
        return entry.door.id if entry is not None and entry.door is not None else ""

    def is_doors_option(self, request_id: str, option: str) -> bool:
        """Whether the door itself offers this option; others stand in the dialog on the screen alone."""
        entry = self._find(request_id)
        door = None if entry is None else entry.door
        return isinstance(door, PermissionRequest) and option in door.wider_options

    @contextlib.contextmanager
    def answering(self, request_id: str, command: str) -> Iterator[None]:
        """While we answer its dialog on the screen: that it closes then is our doing, unless that fails."""
        entry = self._find(request_id)
        if entry is None:
            yield
            return
        entry.is_answered = True
        try:
            yield
        except BaseException:
            entry.is_answered = False
            if entry.outcome is not None and entry in self._entries:
                self._end(entry, *entry.outcome)
            self._settle()
            raise
        entry.is_answered = False
        self._end(entry, _ANSWERS[command], OURS)
        self._settle()

    def _find(self, request_id: str) -> _Entry | None:
        return next((entry for entry in self._entries if entry.told is not None and entry.told.id == request_id), None)

    # --- one request of two views ----------------------------------------------------------------------------------------

    def _settle(self) -> None:
        self._note_closed()
        self._note_open()
        now = _now()
        for entry in list(self._entries):
            if entry.closed_at is not None and not entry.is_answered and now >= self._ends_at(entry):
                self._end(entry, Resolution.GONE, PERSON)
            elif entry.closed_at is None and now >= self._due_at(entry) and entry.told != entry.compose():
                entry.told = entry.compose()
                self._reporter.asked(entry.told)
        self._set_timer()

    def _note_closed(self) -> None:
        shown = self._dialog.digest if self._dialog is not None else ""
        for entry in self._entries:
            if entry.dialog is not None and entry.dialog.digest != shown and entry.closed_at is None:
                entry.closed_at = _now()
        if self._over is not None and self._over[0] != shown:
            self._over = None

    def _note_open(self) -> None:
        """Finds the request whose dialog is on the screen, or makes it one of its own."""
        dialog = self._dialog
        if dialog is None:
            return
        holder = next((entry for entry in self._entries if entry.dialog and entry.dialog.digest == dialog.digest), None)
        told = self._find_told(dialog, holder)
        if told is not None and told is not holder:
            if holder is not None and holder.door is None:
                if holder.told is not None:
                    told.told, told.id = holder.told, holder.id  # it was told by the screen, and keeps that id
                self._entries.remove(holder)
            elif holder is not None:
                holder.dialog = None
            holder = told
            self._over = None
        if holder is None:
            if self._over is not None and _now() < self._over[1] + STALE_S:
                return
            if self._over is not None:
                _log.warning("a dialog is still open that the door said is over: it is asked as the screen shows it")
                self._over = None
            holder = _Entry(self._make_id(SCREEN_REQUEST), None, dialog, _now(), self._profile)
            self._entries.append(holder)
        holder.dialog, holder.closed_at = dialog, None

    def _find_told(self, dialog: OpenDialog, holder: _Entry | None) -> _Entry | None:
        """Finds what a door told of this dialog: the same words; or, after a while, the only thing that it told at all."""
        open_ = [entry for entry in self._entries if entry.door is not None and entry.door.kind == dialog.kind]
        open_ = [entry for entry in open_ if entry.closed_at is None and (entry.dialog is None or entry is holder)]
        same = [entry for entry in open_ if entry.door is not None and _is_same(entry.door, dialog)]
        if same:
            return holder if holder in same else same[0]
        return open_[0] if len(open_) == 1 and _now() >= self._shown_at + OTHER_VIEW_S else None

    def _due_at(self, entry: _Entry) -> float:
        """The moment when it is told, as it is by then."""
        if not self._has_two_views or entry.told is not None or (entry.door is not None and entry.dialog is not None):
            return entry.since
        # A dialog that has just been drawn may turn out to be this one.
        return (max(entry.since, self._shown_at) if self._dialog is not None else entry.since) + OTHER_VIEW_S

    def _ends_at(self, entry: _Entry) -> float:
        assert entry.closed_at is not None
        return entry.closed_at + (OUTCOME_S if entry.door is not None else 0.0 if self._dialog is not None else BLINK_S)

    def _end(self, entry: _Entry, resolution: Resolution, by: str) -> None:
        with contextlib.suppress(ValueError):
            self._entries.remove(entry)
        if entry.told is not None:
            self._reporter.resolved(entry.told.id, resolution, by)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        times = [self._over[1] + STALE_S] if self._over is not None else []
        for entry in self._entries:
            if entry.closed_at is not None and not entry.is_answered:
                times.append(self._ends_at(entry))
            elif entry.closed_at is None and entry.told is None:
                times.append(self._due_at(entry))
        self._timer = asyncio.get_running_loop().call_at(min(times), self._settle) if times else None


class Confirmations:
    """Those that the relay itself asks of a person. No dialog stands on the agent's screen for it, so it is answered from the
    page or the command line alone. It is open until somebody answers, and ends with the wrapper."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._open: dict[str, tuple[str, Callable[[Decision], None]]] = {}  # by request id: what it is about, and who waits

    def ask(self, tool: str, words: str, text: str, decided: Callable[[Decision], None]) -> bool:
        """False where too many are open. The same words are asked about once."""
        if any(words == known for known, _ in self._open.values()):
            return True
        if len(self._open) >= MAX_CONFIRMATIONS:
            return False
        id_ = f"relay-{secrets.token_hex(4)}"
        self._open[id_] = words, decided
        # Read off a screen: no rule approves it.
        self._reporter.asked(PermissionRequest(id_, text, tool, words or None, options=("allow", "deny"), is_exact=False))
        return True

    def answer(self, request_id: str, decision: Decision) -> bool:
        """False: it is no request of ours."""
        _, decided = self._open.pop(request_id, ("", None))
        if decided is None:
            return False
        resolution = Resolution.ALLOWED if decision.is_allowed else Resolution.DENIED
        self._reporter.resolved(request_id, resolution, "door")  # whoever answered is told that it was carried out
        decided(decision)
        return True


def request_of(profile: Profile, dialog: OpenDialog) -> AgentRequest:
    is_allowed = can_allow(looks_of(profile)[dialog.look], dialog)
    text = dialog.question or dialog.text
    if dialog.kind == QUESTION:
        return QuestionRequest(SCREEN_REQUEST, text, dialog.options, can_allow=is_allowed)
    return PermissionRequest(
        SCREEN_REQUEST, text, dialog.tool or "", dialog.subject or None, options=dialog.options,
        wider_options=find_wider(looks_of(profile)[dialog.look], dialog), can_allow=is_allowed, is_exact=False,
    )  # fmt: skip


def _combine(door: AgentRequest, shown: AgentRequest, dialog: OpenDialog) -> AgentRequest:
    """The door's words, and the options of its dialog on the screen."""
    options, is_allowed = shown.options, shown.can_allow or door.can_allow
    other = "" if _is_same(door, dialog) else f"\nOn its screen: {dialog.text}"
    if isinstance(door, QuestionRequest):
        return replace(door, question=door.question + other, options=options, can_allow=is_allowed)
    wider = shown.wider_options if isinstance(shown, PermissionRequest) else ()
    return replace(
        door, description=door.description + other, options=options, wider_options=wider, can_allow=is_allowed,
        is_exact=door.is_exact and not other,
    )  # fmt: skip


def _is_same(request: AgentRequest, dialog: OpenDialog) -> bool:
    """Whether the screen shows what the door tells, word for word; rows may be broken anywhere."""
    if isinstance(request, QuestionRequest):
        return _squeeze(request.question) in (_squeeze(dialog.question), _squeeze(dialog.text))
    subject = _squeeze(request.subject)
    return bool(subject) and subject in (_squeeze(dialog.subject or ""), _squeeze(_body_of(dialog)))


def _body_of(dialog: OpenDialog) -> str:
    """Text that stands between its first row, which names the tool, and its question: the whole command, where the first row has
    no room for it."""
    return dialog.text.partition("\n")[2].partition(dialog.question)[0] if dialog.question else ""


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _now() -> float:
    return asyncio.get_running_loop().time()
