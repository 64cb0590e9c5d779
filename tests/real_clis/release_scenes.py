"""The seven scenes that every release of every CLI plays: with the best way in that opens there, whatever it is.

They are played one after the other with one agent. One that fails is told in a few words, with the rule of the profile that may
be the reason, and the next begins with a new agent.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.terminal.profiles.profile import profile_for
from agent_relay.terminal.profiles.tried_releases import ASKS_NOTHING, SCENES, YES, TriedRelease
from agent_relay.terminal.screen.contents import screen_of_text
from tests.real_clis.harness import Agent, Lab, until
from tests.real_clis.hints import hint_for_permission, hint_for_prompt
from tests.real_clis.model.script import Turn, on_message
from tests.real_clis.more_clis import ALL_CLIS

SCENE_S = 90.0
SILENCE_S = 2.0  # that nothing happens meanwhile is what is tested
KEY_S = 1.0
DRAFT = "let me think"
COMMAND = "rm -rf build"
CLEAN = Turn(on_message("clean up"), command=COMMAND, then="It is clean.")
_ABOUT_PERMISSIONS = ("dialog", "approve", "deny")
Say = Callable[[str], None]


class Failed(Exception):
    """The text says what happened instead."""


class Play:
    """One release. `date` is that of the run."""

    def __init__(self, installed: Path, cli: str, version: str, date: str, say: Say) -> None:
        self._installed, self._cli, self._version, self._date = installed, cli, version, date
        self._say = say
        self._lab: Lab | None = None
        self._bob: Agent | None = None
        self._carol: SyncRelayClient | None = None
        self._number = 0
        self.way, self.took_ms = "", 0

    def run(self) -> TriedRelease:
        found: dict[str, str] = {}
        try:
            for scene in SCENES:
                found[scene] = self._play(scene)
                if scene == "start" and found[scene] != YES:
                    break  # whatever follows would only say so again
        finally:
            self._end()
        return TriedRelease(self._date, self.way, self.took_ms, found)

    def _play(self, scene: str) -> str:
        if scene in _ABOUT_PERMISSIONS and not ALL_CLIS[self._cli].asks:
            return ASKS_NOTHING
        began = time.monotonic()
        try:
            if self._lab is None:
                self._start()
            getattr(self, f"_{scene}" if scene != "start" else "_look_ready")()
            said = YES
        except (Failed, AssertionError, OSError, TimeoutError) as error:
            said = str(error).partition("\n")[0] if isinstance(error, Failed) else f"{type(error).__name__}: {error}"[:200]
            if self._bob is not None:
                self._say(self._bob.describe())
            self._end()
        self._say(f"{self._cli} {self._version} {scene}: {said} ({time.monotonic() - began:.0f} s)")
        return said

    # --- the stage ---------------------------------------------------------------------------------------------------------

    @property
    def lab(self) -> Lab:
        assert self._lab is not None
        return self._lab

    @property
    def bob(self) -> Agent:
        assert self._bob is not None
        return self._bob

    @property
    def carol(self) -> SyncRelayClient:
        assert self._carol is not None
        return self._carol

    def _start(self) -> None:
        self._lab = Lab(self._installed, {self._cli: self._version})
        self._bob = self.lab.begin(self._cli, "Bob", doors=True)
        self._carol = self.lab.client("Carol").__enter__()
        self._look_ready()

    def _end(self) -> None:
        if self._carol is not None:
            self._carol.__exit__(None, None, None)
        if self._lab is not None:
            self._lab.close()
        self._lab = self._bob = self._carol = None

    def _until(self, condition: Callable[[], object], what: str, hint: Callable[[], str] | None = None) -> None:
        try:
            until(condition, what, deadline_s=SCENE_S)
        except AssertionError:
            found = hint() if hint is not None else ""
            raise Failed(f"not seen: {what}" + (f"; {found}" if found else "")) from None

    def _described(self) -> Mapping[str, Any]:
        agents = json.loads(self.lab.command("agents", "--json").stdout or "{}").get("agents", [])
        return next((agent for agent in agents if agent["name"] == "Bob"), {})

    def _prompt_hint(self) -> str:
        return hint_for_prompt(profile_for(self._cli), screen_of_text(self.bob.screen))

    def _permission_hint(self) -> str:
        return hint_for_permission(profile_for(self._cli), screen_of_text(self.bob.screen), COMMAND)

    def _hear(self, words: str) -> None:
        try:
            heard = self.carol.receive(timeout=SCENE_S).body
        except TimeoutError:
            raise Failed(f"its words did not arrive: {words}") from None
        if heard != words:
            raise Failed(f"it was heard to say “{heard[:60]}” in place of “{words}”")

    def _once(self, *bodies: str) -> None:
        """The model was told each of these once, in this order."""
        told = [body for body in self.bob.told() if body in bodies]
        if told != list(bodies):
            raise Failed(f"the model was told {told} in place of {list(bodies)}")

    def _next(self, words: str) -> str:
        """The same words never come twice."""
        self._number += 1
        return f"{words} {self._number}"

    # --- the scenes --------------------------------------------------------------------------------------------------------

    def _look_ready(self) -> None:
        def is_ready() -> bool:
            if self.bob.process.poll() is not None:
                raise Failed(f"it ended: {(self.bob.process.stderr.read() if self.bob.process.stderr else '')[-200:].strip()}")
            words, key = self.bob.cli.dismiss
            if words and words in self.bob.screen:
                self.bob.press(key)
            return self._described().get("state") == "idle"

        self._until(is_ready, "ready at its prompt", self._prompt_hint)

    def _idle(self) -> None:
        asked, say = self._next("are you ready"), self._next("I am ready")
        self.bob.play(Turn(on_message(asked), say=f"Sure.\n\n->relay:Carol {say}\n\nThat is all."))
        sent = time.monotonic()
        self.carol.send("Bob", asked)
        self._until(lambda: self.bob.times_told(asked), "the message reaches the model", self._prompt_hint)
        self.took_ms = round((time.monotonic() - sent) * 1000)
        self._hear(say)
        self._once(asked)
        self.way = str(self._described().get("door") or "")

    def _busy(self) -> None:
        count, meanwhile = self._next("count"), self._next("meanwhile")
        heard, ended = self._next("heard you"), self._next("counted to the end")
        self.bob.play(
            Turn(on_message(count), say=f"->relay:Carol {ended}", drips=True),
            Turn(on_message(meanwhile), say=f"->relay:Carol {heard}"),
        )
        self.lab.send("Bob", count)
        self._until(self.bob.model.script.is_dripping.is_set, "it works")
        self._until(lambda: self._described().get("state") == "working", "it is seen to work")
        self.lab.send("Bob", meanwhile)
        self._until(lambda: meanwhile in self.bob.inbox, "the message is there")
        time.sleep(SILENCE_S)
        self.bob.model.script.release()
        self._hear(ended)
        self._hear(heard)
        self._once(count, meanwhile)
        if not all(answered.is_whole for answered in self.bob.model.answered):
            raise Failed("its answer was cut off")

    def _draft(self) -> None:
        self.bob.play()
        self._rest()
        asked = self._next("are you there")
        self.bob.type(DRAFT)
        self._until(lambda: DRAFT in self.bob.screen, "the draft is in its composer")
        self.lab.send("Bob", asked)
        with contextlib.suppress(AssertionError):  # where it has to be typed, it waits for the draft to go
            until(lambda: self.bob.times_told(asked), "it is told at once", deadline_s=SILENCE_S * 4)
        if DRAFT not in self.bob.screen:
            raise Failed("the draft was not left alone")
        for left in range(len(DRAFT), 0, -1):  # one by one: keys that come at once count as one in some
            self.bob.press("BSpace")
            with contextlib.suppress(AssertionError):  # the last letters stand elsewhere on the screen too
                until(lambda left=left: DRAFT[:left] not in self.bob.screen, "it is shorter", deadline_s=KEY_S)  # type: ignore[misc]
        self._until(lambda: self.bob.times_told(asked), "the message after the draft is gone", self._prompt_hint)
        self._once(asked)
        if any(DRAFT in text for text in self.bob.model.given):
            raise Failed("the draft was sent")

    def _rest(self) -> None:
        self._until(lambda: self._described().get("state") == "idle", "at rest at its prompt", self._prompt_hint)

    def _ask(self) -> None:
        """Lets it ask for the permission."""
        build = self.lab.project / "build"
        build.mkdir(exist_ok=True)
        (build / "out.o").write_text("made")
        self._rest()
        self.bob.play(CLEAN)
        self.lab.send("Bob", self._next("clean up"))
        self._until(self._request, "a permission with the exact command", self._permission_hint)

    def _request(self) -> dict[str, Any]:
        found = json.loads(self.lab.command("permissions", "--json").stdout or "{}").get("permissions", [])
        return next((each for each in found if COMMAND in str(each.get("command") or each.get("description") or "")), {})

    def _dialog(self) -> None:
        self._ask()
        bodies = [self._next("yes y 1 number") for _ in range(3)]
        for body in bodies:
            self.lab.send("Bob", body)
        self._until(lambda: all(body in self.bob.inbox for body in bodies), "the messages are there")
        time.sleep(SILENCE_S)
        if not (self.lab.project / "build").exists() or not self._request():
            raise Failed("the dialog was answered by a message")
        self.bob.approve()
        self._until(lambda: not (self.lab.project / "build").exists(), "the command runs once a person permits it")
        self._until(lambda: self.bob.times_told(bodies[-1]), "the messages after the dialog", self._prompt_hint)
        self._once(*bodies)

    def _decide(self, word: str, is_over: Callable[[], bool], what: str) -> None:
        self._ask()
        said = ""

        def has_decided() -> bool:
            """Where keys are pressed for it, a busy machine may leave the dialog open: then once more."""
            nonlocal said
            if not is_over() and (request := self._request()):
                said = " ".join(self.lab.command("permissions", word, str(request["id"])).stderr.split())
            return is_over()

        self._until(has_decided, what, lambda: self._permission_hint() or said)

    def _approve(self) -> None:
        self._decide("approve", lambda: not (self.lab.project / "build").exists(), "the command runs")

    def _deny(self) -> None:
        self._decide("deny", lambda: not self._request(), "the request is closed")
        self._rest()
        if not (self.lab.project / "build").exists():
            raise Failed("the command ran all the same")
        asked = self._next("still there")
        self.lab.send("Bob", asked)
        self._until(lambda: self.bob.times_told(asked), "a message after the refusal", self._prompt_hint)
