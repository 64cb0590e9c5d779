"""Making a profile: records a program or an agent, proposes what its rows mean, shows that, and saves it with the recording."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.wrapper.profile_shelf import SUFFIX, own_folders
from agent_relay.private_files import replace_private
from agent_relay.protocol.names import is_name
from agent_relay.sdk.locate import Place
from agent_relay.terminal.profiles.custom_profile import prompt_row, write_profile
from agent_relay.terminal.profiles.profile import GENERIC, Profile, ProfileError, check_pattern, parse_profile
from agent_relay.terminal.recordings.asciicast import CastError, read_cast
from agent_relay.terminal.recordings.profile_proposal import Proposal, propose
from agent_relay.terminal.recordings.profile_trial import mark_expectations
from agent_relay.terminal.screen.state import State, look

_SECONDS = 10.0  # where nobody is there to end the program
_AGENT_SECONDS = 5.0
_SHOWN_ROWS = 12


class NewProfile(Struct):
    recording: Path
    proposal: Proposal
    profile: Profile
    text: str


class ProfileMaker:
    def __init__(self, place: Place, name: str, *, is_replacing: bool) -> None:
        if not is_name(name) or name == GENERIC:
            raise Failure(f"{clean_line(name)} cannot be the name of a profile.", USAGE)
        self._place = place
        self._name = name
        self._folder = own_folders(place.home, os.environ)[0]
        self.path = os.path.join(self._folder, f"{name}{SUFFIX}")
        if os.path.exists(self.path) and not is_replacing:
            raise Failure(f"{self.path} already exists; overwrite it with --force.")

    # --- the recording ---------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def recorded(
        self, command: list[str], agent: str | None, recording: str | None, seconds: float | None, words: list[str]
    ) -> Iterator[Path]:
        """A recording of what is to be described, in a folder that is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="agent-relay-") as folder:
            path = Path(folder) / f"{self._name}.cast"
            if recording is not None:
                try:
                    shutil.copyfile(recording, path)
                except OSError as error:
                    raise Failure(f"{clean_line(recording)} cannot be read: {error.strerror}.") from None
            elif agent is not None:
                self._watch_agent(agent, path, seconds or _AGENT_SECONDS)
            else:
                self._run_program(command, path, seconds, words)
            yield path

    def _run_program(self, command: list[str], path: Path, seconds: float | None, words: list[str]) -> None:
        from agent_relay.daemon.secret_variable import forget_api_token
        from agent_relay.terminal.agent.launch import is_terminal_error
        from agent_relay.terminal.backends.person_terminal import PersonTerminal
        from agent_relay.terminal.recordings.profile_recording import ProgramRecording

        forget_api_token()
        if PersonTerminal.find() is None:
            seconds = seconds or _SECONDS
        elif seconds is None and not words:
            screen = Screen()
            screen.line("Wait for its prompt, give it something to do, wait until it is done, then exit it.")
            screen.flush()
        recording = ProgramRecording(command, str(path), words=words, seconds=seconds)
        try:
            asyncio.run(recording.run(os.getcwd(), dict(os.environ)))
        except Exception as error:
            if is_terminal_error(error):
                raise Failure(clean_line(str(error))) from None
            raise

    def _watch_agent(self, agent: str, path: Path, seconds: float) -> None:
        from agent_relay.cli.wrapper.wrapped_agent import find_running
        from agent_relay.terminal.backends.tmux_drawing import PaneView
        from agent_relay.terminal.recordings.recorder import TerminalRecorder
        from agent_relay.terminal.recordings.tmux_recording import PaneRecording

        name, server = find_running(self._place, agent)
        if server is None:
            raise Failure(
                f"{name} does not run in tmux here, so it cannot be watched. Let this command run its program: -- CMD..."
            )

        async def watch() -> None:
            pane = await server.find_pane(name)
            if pane is None:
                raise Failure(f"{name} has just ended.")
            made: list[TerminalRecorder] = []

            def make(sight: PaneView) -> TerminalRecorder:
                made.append(TerminalRecorder(str(path), sight.columns, sight.rows, title=name, term=sight.term))
                return made[0]

            try:
                await PaneRecording(server, pane).run(make, asyncio.Event(), seconds)
            finally:
                for recorder in made:
                    recorder.close()

        asyncio.run(watch())

    # --- the proposal ----------------------------------------------------------------------------------------------------

    def propose(self, recording: Path, program: str, prompt: str | None, busy: Sequence[str]) -> NewProfile:
        """`prompt`, `busy`: expressions that the person gave. Raises Failure where there is no prompt to be found."""
        try:
            cast = read_cast(recording)
            if prompt is not None:
                check_pattern(prompt, "--prompt")
                prompt = prompt_row([prompt])
            for pattern in busy:
                check_pattern(pattern, "--busy")
            proposal = propose(cast, prompt or "")
            if not proposal.prompt:
                raise Failure(
                    "No prompt was found: the program never waited for input with text before the cursor. Watch it longer "
                    "(--seconds), or give its prompt: --prompt REGEX"
                )
            proposal.busy = [*busy, *(mark for mark in proposal.busy if mark not in busy)]
            text = write_profile(self._name, program, proposal.prompt, proposal.busy)
            profile = parse_profile(text, self.path, is_own=True)
        except (CastError, ProfileError) as error:
            raise Failure(clean_line(str(error))) from None
        return NewProfile(recording, proposal, profile, text)

    def show(self, made: NewProfile) -> None:
        screen, proposal = Screen(), made.proposal
        screen.line(("prompt", "bold"), f"  {clean_line(proposal.prompt)}   (seen: {clean_line(proposal.shown)})")
        for mark in proposal.busy or ["not seen: give it something to do while it is watched, or use --busy"]:
            screen.line(("busy  ", "bold"), f"  {clean_line(mark)}")
        if proposal.last is not None:
            rows = [line.text for line in proposal.last.visible if line.text][-_SHOWN_ROWS:]
            screen.line(("screen", "bold"), "  the last one:")
            screen.block(clean_block("\n".join(rows)))
            screen.line(("would ", "bold"), f"  {_judge(made)}")
        screen.flush()

    # --- saving ----------------------------------------------------------------------------------------------------------

    def save(self, made: NewProfile) -> None:
        mark_expectations(made.recording, made.proposal)
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            cast = os.path.join(self._folder, f"{self._name}.cast")
            replace_private(cast, made.recording.read_bytes())
            replace_private(self.path, made.text.encode())
        except OSError as error:
            raise Failure(f"{self.path} cannot be written: {error.strerror}.") from None
        screen = Screen()
        screen.line(("saved", "bold green"), f"  {clean_line(self.path)}, with its recording beside it")
        screen.line(("test it", "dim"), f"  agent-relay profile test {self._name}")
        screen.line(("use it", "dim"), f"  agent-relay wrap -n NAME --cli {self._name} CMD...")


def _judge(made: NewProfile) -> str:
    assert made.proposal.last is not None
    sight = look(made.profile, made.proposal.last, State.WORKING)
    if sight.state is State.DIALOG:
        return "type nothing: a dialog is open"
    if sight.doubt:
        return f"type nothing: {clean_line(sight.doubt)}"
    if sight.state is State.IDLE and sight.composer is not None:
        return "wait: there is a draft in the composer" if sight.composer.draft else "type a message: it is idle"
    return "wait: it is working" if sight.is_busy else "wait: its prompt is not on this screen"
