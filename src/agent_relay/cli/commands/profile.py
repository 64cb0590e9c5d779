"""`profile`: how programs look to the relay. Makes a profile from a live terminal, tests, lists and shows them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.cli.wrapper.profile_shelf import ProfileShelf
    from agent_relay.sdk.locate import Place
    from agent_relay.terminal.profiles.profile import Profile

profile = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="[list|show|new|test]")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.", show_default=False)]


@profile.callback(invoke_without_command=True)
def root(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Show, create and test profiles: what a program's prompt, its busy screen and its dialogs look like.

    Your own are in ~/.config/agent-relay/profiles. A project's, in .agent-relay/profiles, can only mark more screens
    as busy or as an open dialog.
    """
    if context.invoked_subcommand is not None:
        context.obj = (socket, state_dir, as_json)
        return 0
    return _list(find_place(socket, state_dir), as_json=as_json)


@profile.command("list", epilog="\b\nExample:\n  agent-relay profile list")
def list_profiles(
    context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:  # fmt: skip
    """List all profiles, yours first; the same as `profile` alone."""
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    return _list(find_place(socket, state_dir), as_json=as_json)


@profile.command("show", epilog="\b\nExample:\n  agent-relay profile show generic")
def show(context: typer.Context, name: Name, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Print a profile's file."""
    from importlib import resources

    socket, state_dir, _, _ = inherit(context, socket, state_dir, False)
    found = _find(_shelf(find_place(socket, state_dir)), name)
    if found.origin:
        with open(found.origin, encoding="utf-8") as file:
            text = file.read()
    else:
        text = (resources.files("agent_relay.terminal") / "profiles" / f"{found.name}.toml").read_text("utf-8")
    Screen().block(clean_block(text.rstrip("\n")))
    return 0


@profile.command(
    "new",
    epilog="\b\nExamples:\n  agent-relay profile new chatty -- chatty --model x\n  agent-relay profile new chatty --agent Bob\n"
    "  agent-relay profile new chatty --yes --seconds 20 --say hello -- chatty",
)
def new(
    context: typer.Context,
    name: Name,
    command: Annotated[list[str] | None, typer.Argument(metavar="[-- CMD...]", help="The program to run.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Watch this running agent.")] = None,
    recording: Annotated[str | None, typer.Option("--from", metavar="FILE", help="Use this recording.")] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=1, metavar="S", help="Watch for this long; by default until it ends.")
    ] = None,
    say: Annotated[
        list[str] | None, typer.Option("--say", metavar="TEXT", help="Type this at its prompt, to see it work.")
    ] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", metavar="REGEX", help="Its prompt, instead of the one found.")] = None,
    busy: Annotated[list[str] | None, typer.Option("--busy", metavar="REGEX", help="A row that shows while it works.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Save it without asking.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing profile.")] = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Create a profile from a live terminal.

    Runs the program here and watches: wait for its prompt, give it something to do, wait until it is done, then exit it. Shows
    what was found and what the relay would do with the last screen, and saves the profile with the recording, which `profile
    test` replays. The recording contains everything the screen showed.
    """
    from agent_relay.cli.wrapper.profile_maker import ProfileMaker

    socket, state_dir, _, _ = inherit(context, socket, state_dir, False)
    if sum(each is not None and each != [] for each in (command, agent, recording)) != 1:
        raise Failure("Say what to watch: a program (-- CMD...), --agent NAME, or --from FILE.", USAGE)
    maker = ProfileMaker(find_place(socket, state_dir), name, is_replacing=force)
    with maker.recorded(list(command or ()), agent, recording, seconds, list(say or ())) as found:
        made = maker.propose(found, os.path.basename(command[0]) if command else "", prompt, list(busy or ()))
        maker.show(made)
        if not yes and not _is_wanted(maker.path):
            Screen().line("Nothing was saved.")
            return 1
        maker.save(made)
    return 0


def _is_wanted(path: str) -> bool:
    if not sys.stdin.isatty():
        sys.stderr.write("agent-relay: Cannot ask for confirmation here; --yes saves the profile.\n")
        return False
    return typer.confirm(f"Save it as {clean_line(path)}?", default=True)


@profile.command("test", epilog="\b\nExamples:\n  agent-relay profile test\n  agent-relay profile test chatty --json")
def try_out(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Only this one; by default all of yours.")] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Replay the recordings of your profiles, and show where a profile now sees something different.

    Exits with status 1 if anything differs or a profile has no recording.
    """
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    shelf, screen = _shelf(find_place(socket, state_dir)), Screen()
    wanted = [_find(shelf, name)] if name else [each for each in shelf.profiles.values() if each.origin]
    if name and not wanted[0].origin:
        raise Failure(f"{clean_line(name)} is built in; its recordings are tested with the relay itself.")
    rows = [_try(each, shelf) for each in wanted]
    broken = list(shelf.broken.values()) if name is None else []
    is_fine = not broken and all(row["ok"] for row in rows)
    if as_json:
        screen.json({"ok": is_fine, "profiles": rows, "broken": broken})
        return 0 if is_fine else 1
    for row in rows:
        verdict = ("ok", "bold green") if row["ok"] else ("failed", "bold red")
        problem = f"  {clean_line(row['problem'])}" if row["problem"] else ""
        screen.line(verdict, "  ", (clean_line(row["name"]), "bold"), f"  expectations: {row['expectations']}{problem}")
        for each in row["differences"]:
            where = f"{os.path.basename(each['file'])} at {each['t']:.2f} s"
            screen.line(f"  {clean_line(where)}: expected {clean_line(each['expected'])}, found {each['found']}")
    for note in broken:
        screen.line(("failed", "bold red"), "  ", clean_line(note))
    if not rows and not broken:
        screen.line("You have no profiles of your own. To make one: agent-relay profile new NAME -- CMD...")
    return 0 if is_fine else 1


def _try(each: Profile, shelf: ProfileShelf) -> dict[str, Any]:
    from agent_relay.terminal.recordings.asciicast import CastError
    from agent_relay.terminal.recordings.profile_trial import Outcome, check_recording, recordings_of
    from agent_relay.terminal.recordings.replay import ReplayError

    found: list[Outcome] = []
    problem = ""
    try:
        found = [check_recording(path, each, shelf.profiles) for path in recordings_of(each)]
    except (ReplayError, CastError, OSError) as error:
        problem = str(error)
    expectations = sum(outcome.expectations for outcome in found)
    if not expectations and not problem:
        problem = f"no recording with expectations beside {each.origin}"
    differences = [
        {"file": outcome.path, "t": difference.t, "expected": difference.expected, "found": difference.found}
        for outcome in found
        for difference in outcome.differences
    ]
    return {
        "name": each.name,
        "ok": not problem and not differences,
        "problem": problem or None,
        "expectations": expectations,
        "differences": differences,
    }


def _shelf(place: Place) -> ProfileShelf:
    from agent_relay.cli.wrapper.profile_shelf import load_shelf

    return load_shelf(place.root, place.home)


def _find(shelf: ProfileShelf, name: str):  # type: ignore[no-untyped-def]
    from agent_relay.terminal.profiles.profile import ProfileError

    if name not in shelf.profiles and name not in shelf.broken:
        raise Failure(f"There is no profile {clean_line(name)}. See: agent-relay profile list")
    try:
        return shelf.find(name)
    except ProfileError as error:
        raise Failure(clean_line(str(error))) from None


def _list(place: Place, *, as_json: bool) -> int:
    from agent_relay.terminal.recordings.profile_trial import recordings_of

    shelf, screen = _shelf(place), Screen()
    if as_json:
        screen.json(
            {
                "profiles": [
                    {
                        "name": each.name, "title": each.title, "file": each.origin or None,
                        "executables": list(each.executables), "recordings": [str(path) for path in recordings_of(each)],
                        "tightened_by_project": each.name in shelf.added,
                    }
                    for each in shelf.profiles.values()
                ],
                "notes": shelf.notes,
            }
        )  # fmt: skip
        return 0
    for each in shelf.profiles.values():
        added = "  (extended by the project)" if each.name in shelf.added else ""
        screen.line((f"{clean_line(each.name):<12}", "bold"), f"  {clean_line(each.origin) or 'built in'}{added}")
    for note in shelf.notes:
        screen.line(("note", "bold yellow"), "  ", clean_line(note))
    return 0
