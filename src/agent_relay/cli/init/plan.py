"""The plan: which files would change, from what to what. Nothing is written while it is made."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field

from agent_relay.cli.init.editing import CannotEdit
from agent_relay.cli.init.files import FileState, Record, Shelf, hash_of, read_state, write_state
from agent_relay.cli.init.targets import Target, find_targets


@dataclass(slots=True)
class Step:
    """One file. `after` None: it is removed; the same as before: only our record of it changes."""

    state: FileState
    after: bytes | None
    owners: list[str]  # the CLIs it is for; of a person's own file, with the project
    record: Record | None
    removes: bool

    @property
    def is_change(self) -> bool:
        return self.after != self.state.content

    def diff(self, root: str) -> list[str]:
        name = os.path.relpath(self.state.path, root)
        name = self.state.path if name.startswith("..") else name
        before, after = ((each or b"").decode("utf-8", "replace").splitlines() for each in (self.state.content, self.after))
        old = "/dev/null" if self.state.content is None else name
        new = "/dev/null" if self.after is None else name
        return list(difflib.unified_diff(before, after, old, new, lineterm=""))


@dataclass(slots=True)
class Plan:
    steps: list[Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)  # files that are left alone, and why

    @property
    def changes(self) -> list[Step]:
        return [step for step in self.steps if step.is_change]


def make_plan(clis: list[str], root: str, shelf: Shelf, *, remove: bool) -> Plan:
    plan = Plan()
    by_real: dict[str, Step] = {}
    for cli in clis:
        for target in find_targets(cli, root):
            owner = cli if target.is_of_project else f"{cli} in {root}"
            try:
                state = read_state(target.path, root if target.is_of_project else None)
                known = by_real.get(state.real)
                if known is not None:
                    known.owners.append(owner)  # a file that several share, or that is a link to another
                    if remove:
                        _decide_removal(known, target, shelf)
                    continue
                step = Step(state, state.content, [owner], shelf.find(state), remove)
                if remove:
                    _decide_removal(step, target, shelf)
                else:
                    _decide_addition(step, target)
            except (CannotEdit, OSError) as error:
                plan.problems.append(f"{target.path}: {error}")
                continue
            by_real[state.real] = step
            plan.steps.append(step)
    return plan


def _decide_addition(step: Step, target: Target) -> None:
    text = step.state.text
    added = target.change.add(text)
    if added != text or step.state.content is None:
        step.after = added.encode("utf-8")
        step.record = None  # what an older record says is of another time


def _decide_removal(step: Step, target: Target, shelf: Shelf) -> None:
    record, content = step.record, step.state.content
    if content is None or (record is not None and not set(record.owners) <= set(step.owners)):
        return  # gone already, or still wanted by another CLI or project
    if record is not None and record.after == hash_of(content):
        try:
            step.after = shelf.original(step.state, record)
        except OSError:
            pass  # the backup is lost: only ours is taken out
        else:
            return
    left = target.change.remove(step.state.text)
    step.after = left.encode("utf-8")
    if record is not None and not record.existed and not left.strip("\ufeff \t\r\n"):
        step.after = None


def carry_out(step: Step, shelf: Shelf) -> None:
    """Raises CannotEdit or OSError; then the file is as it was."""
    if step.removes:
        _remove(step, shelf)
    elif step.is_change:
        assert step.after is not None
        shelf.keep(step.state, step.after, step.owners)
        write_state(step.state, step.after)
    elif step.record is not None:
        step.record.owners = list(dict.fromkeys([*step.record.owners, *step.owners]))
        shelf.note(step.state, step.record)


def _remove(step: Step, shelf: Shelf) -> None:
    record = step.record
    left = [] if record is None else [owner for owner in record.owners if owner not in step.owners]
    if step.is_change:
        write_state(step.state, step.after)
    if record is not None and left:
        record.owners = left
        shelf.note(step.state, record)
    else:
        shelf.forget(step.state, record)
