"""Plans: the schema, the lines of mistakes, variables and references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agent_relay.patterns.run.document import RunFileError, read_document
from agent_relay.patterns.run.plan import Plan, read_plan
from agent_relay.patterns.run.schema import PATTERNS, RUN_SCHEMA
from agent_relay.protocol.errors import RelayError

ROOT = Path(__file__).parents[4]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
FILE = """\
name: review
vars:
  files: [a.py, b.py]
  cli: claude
agents:
  cli: "{{vars.cli}}"
  timeout: 5m
steps:
  - id: reviews
    map:
      task: Review {{item}}
      items: "{{vars.files}}"
  - id: report
    pipeline:
      input: "{{steps.reviews.output}}"
      stages:
        - name: Writer
          task: Write.
"""


def read(text: str, **given: str) -> Plan:
    return read_plan(text, "f.yaml", "f", given)


def test_a_plan_has_its_steps_with_the_defaults_of_agents() -> None:
    plan = read(FILE)
    assert (plan.name, plan.output) == ("review", "{{steps.report.output}}")
    assert [(step.id, step.pattern, step.goes_on) for step in plan.steps] == [
        ("reviews", "map", False),
        ("report", "pipeline", False),
    ]
    assert plan.steps[0].body["timeout"] == "5m"


def test_the_digest_tells_plans_apart() -> None:
    digests = {read(FILE).digest, read(FILE, cli="codex").digest, read(FILE.replace("Write.", "Write!")).digest}
    assert len(digests) == 3
    assert read(f"# a comment\n{FILE}").digest == read(FILE).digest


def test_variables_are_texts_or_json_like_their_defaults() -> None:
    plan = read(FILE, files='["x"]', cli="7")
    assert plan.variables == {"files": ["x"], "cli": "7"}
    with pytest.raises(RelayError, match="files must be JSON, like its default"):
        read(FILE, files="x")
    with pytest.raises(RelayError, match=r"f\.yaml has no variable file\. Did you mean files\?"):
        read(FILE, file="x")
    with pytest.raises(RunFileError, match="line 4: The variable cli has no value: give it with --var cli=VALUE"):
        read(FILE.replace("cli: claude", "cli:"))


@pytest.mark.parametrize(
    ("before", "after", "line", "reason"),
    [
        ("task: Review {{item}}", "tsk: x", 11, "Unknown key tsk: did you mean task"),
        ("      task: Review {{item}}\n", "", 10, "needs `task`"),
        ("id: report", "id: reviews", 13, "There are two steps reviews"),
        ("id: report", "id: two words", 13, "does not match"),
        ("timeout: 5m", "timeout: soon", 7, '`timeout` cannot be "soon". How long each attempt may take'),
        ("timeout: 5m", "timeout: 0", 7, "`timeout` cannot be 0"),
        ("    pipeline:", "    pipelines:", 14, "Unknown key pipelines: did you mean pipeline"),
        ('items: "{{vars.files}}"', 'items: "{{vars.fils}}"', 12, "there is no variable fils. Did you mean vars.files"),
        ("steps.reviews.output", "steps.review.output", 15, "there is no step review. Did you mean steps.reviews"),
        ("Review {{item}}", '"{{steps.report.output}}"', 11, "a step that has not run yet"),
        ('  cli: "{{vars.cli}}"\n', "", 9, "There is no `cli`"),
        ("Review {{item}}", "{{item}}", 11, "Put quotes around a value that begins with {{"),
        ("          task: Write.", "          task: 7", 18, "7 is not of type 'string'"),
        ("name: Writer", "name: 9lives", 17, "does not match"),
        (
            "    pipeline:\n",
            "    vote: {question: x, voters: [{name: A}]}\n    pipeline:\n",
            15,
            "one pattern, and this one has vote and pipeline",
        ),
        (FILE, "steps: []", 1, "should be non-empty"),
        (FILE, "- a\n- b", 1, "A run file is a map"),
        (FILE, "steps:\n  - id: x\n", 2, "A step needs one of map, pipeline"),
        (FILE, "steps: 7\n", 1, "7 is not of type 'array'"),
    ],
)
def test_mistakes_are_named_with_their_line(before: str, after: str, line: int, reason: str) -> None:
    assert before in FILE
    with pytest.raises(RunFileError) as refused:
        read(FILE.replace(before, after, 1))
    assert reason in refused.value.message
    assert (refused.value.line, refused.value.message.startswith(f"f.yaml, line {line}: ")) == (line, True)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_plans(path: Path) -> None:
    given = {"feature": "x"} if path.name == "feature.yaml" else {}
    assert read_plan(path.read_text("utf-8"), path.name, path.stem, given).steps


def test_there_are_three_examples_that_show_every_pattern() -> None:
    shown = {
        pattern
        for path in EXAMPLES
        for step in read_document(path.read_text("utf-8"), path.name).value["steps"]
        for pattern in PATTERNS
        if pattern in step
    }
    assert (len(EXAMPLES), shown) == (3, set(PATTERNS))


def test_the_published_schema_is_the_one_in_use_and_a_schema() -> None:
    published: Any = json.loads((ROOT / "docs/api/run.schema.json").read_text("utf-8"))
    assert published == json.loads(json.dumps(RUN_SCHEMA))
    jsonschema.Draft202012Validator.check_schema(published)
