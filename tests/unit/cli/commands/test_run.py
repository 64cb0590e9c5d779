"""`run` without a daemon: the plan, the schema, mistakes; and the picture of a run."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from agent_relay.cli.commands.run import _name_of, _report
from agent_relay.cli.failures import Failure
from agent_relay.cli.main import main
from agent_relay.cli.output.run_view import RunView
from agent_relay.cli.output.screen import Screen
from agent_relay.events.costs import Breakdown
from agent_relay.patterns.run.plan import read_plan
from agent_relay.patterns.run.runner import RunResult, StepChange, StepProgress
from agent_relay.patterns.run.schema import RUN_SCHEMA
from agent_relay.patterns.tasks import Progress

FILE = """\
vars: {who: Bob}
agents: {cli: claude}
steps:
  - {id: one, map: {task: "Greet {{vars.who}} for {{item}}", items: [a, b]}}
  - {id: two, pipeline: {input: "{{steps.one.output}}", stages: [{name: S, cli: codex, task: Sum up.}]}}
"""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["run", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_a_dry_run_shows_the_plan_and_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "greet.yaml").write_text(FILE)
    status, out, _ = run(capsys, str(tmp_path / "greet.yaml"), "--dry-run", "--var", "who=Ann")
    assert status == 0
    assert out.splitlines() == [
        "greet  nothing is started",
        "  one  map  2 items",
        "    task: Greet Ann for {{item}}",
        "  two  pipeline",
        "    input: {{steps.one.output}}",
        "    S (codex): Sum up.",
    ]
    status, out, _ = run(capsys, str(tmp_path / "greet.yaml"), "--dry-run", "--json")
    assert [step["id"] for step in json.loads(out)["steps"]] == ["one", "two"]


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.yaml").write_text(FILE.replace("items", "itms"))
    path = str(tmp_path / "bad.yaml")
    status, _, errors = run(capsys, path)
    assert (status, f"{path}, line 4: Unknown key itms: did you mean items?" in errors) == (2, True)
    assert "--var who is not NAME=VALUE" in run(capsys, path, "--var", "who")[2]
    assert "Name the file to run" in run(capsys)[2]
    assert "No such file" in run(capsys, str(tmp_path / "nothing.yaml"))[2]
    (tmp_path / "bytes.yaml").write_bytes(b"\xff")
    assert "not valid UTF-8" in run(capsys, str(tmp_path / "bytes.yaml"))[2]


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "--schema")
    assert (status, json.loads(out)) == (0, json.loads(json.dumps(RUN_SCHEMA)))


@pytest.mark.parametrize(("file", "name"), [("a/review.yaml", "review"), ("9 lives.yml", "run-9-lives"), (".yaml", "run-")])
def test_a_run_is_called_as_its_file(file: str, name: str) -> None:
    assert _name_of(file) == name


def changes() -> list[StepChange | StepProgress]:
    return [
        StepChange("zero", "vote", "kept"),
        StepChange("one", "map", "begun"),
        StepProgress("one", Progress("started", "Worker", "Worker-1-3fa9", 1, 0, 2)),
        StepProgress("one", Progress("started", "Worker", "Worker-2-3fa9", 1, 0, 2)),
        StepProgress("one", Progress("asked_again", "Worker", "Worker-2-3fa9", 1, 0, 2, "not\x1b[31m JSON")),
        StepProgress("one", Progress("answered", "Worker", "Worker-1-3fa9", 1, 1, 2)),
    ]


def test_into_a_file_there_is_a_line_for_every_step() -> None:
    stream = io.StringIO()
    with RunView(Screen(stream), "review", "Run-3fa9") as view:
        for change in changes():
            view.hear(change)
    lines = [line.partition(" ")[2] for line in stream.getvalue().splitlines()]
    assert lines[:3] == ["zero kept", "one begun", "one 0/2 Worker-1-3fa9 started"]
    assert "asked again: not" in lines[4]
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_there_is_a_picture() -> None:
    view = RunView(Screen(io.StringIO()), "review", "Run-3fa9", is_shown=False)
    for change in changes():
        view.hear(change)
    shown = view.draw().plain.splitlines()
    assert shown[0] == "review  Run-3fa9"
    assert shown[1].startswith("✔ zero  vote")
    assert shown[2].startswith("▶ one  map  1/2")
    assert shown[3:] == ["    Worker-2-3fa9  asked again"]
    view.hear(StepChange("one", "map", "failed", ("a: it crashed",)))
    assert view.draw().plain.splitlines()[2].endswith("a: it crashed")


def test_the_end_says_what_it_cost_and_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    plan = read_plan(FILE, "f.yaml", "greet", {})
    used = Breakdown(1_000, 200, 0, 0, 1_200, 0, 0.25)
    assert _report(Screen(), plan, RunResult(output="Hello.\nBye.", usage=used), as_json=False) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("Hello.\nBye.\n", "1,200 tokens, $0.25\n")
    lost = RunResult(failed_step="one", failures=("a: it crashed.",), usage=used)
    with pytest.raises(Failure, match=r"Step one failed\. a: it crashed\. Run the same command again"):
        _report(Screen(), plan, lost, as_json=False)
    capsys.readouterr()
    assert _report(Screen(), plan, lost, as_json=True) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["outcome"], found["failed_step"], found["usage"]["totalTokens"]) == ("failed", "one", 1_200)
