"""What the tests with real CLIs stand on, without any CLI: the scripted model, the installer and the table."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.profiles.profile import profile_for
from scripts import real_clis
from tests.integration.stage import until
from tests.real_clis import results
from tests.real_clis.clis import CLIS
from tests.real_clis.door_clis import DOOR_CLIS
from tests.real_clis.model.script import Turn, on_message
from tests.real_clis.model.server import ModelServer

ROOT = Path(__file__).parents[2]
HELLO = "Relay message from Dave [0123abcd]: hello"
TURNS = [Turn(on_message("hello"), say="->relay:Dave hello to you"), Turn("clean", command="rm -rf build", then="It is clean.")]

# How each dialect says: these words, then this answer of the model, then those words; and which tools there are.
Talk = list[tuple[str, str]]


def anthropic(talk: Talk, *tools: str) -> tuple[str, dict[str, Any]]:
    messages = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in talk]
    return "/v1/messages", {"messages": messages, "tools": [{"name": name} for name in tools]}


def responses(talk: Talk, *tools: str) -> tuple[str, dict[str, Any]]:
    given = [{"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]} for role, text in talk]
    return "/v1/responses", {"input": given, "tools": [{"type": "function", "name": name} for name in tools]}


def chat(talk: Talk, *tools: str) -> tuple[str, dict[str, Any]]:
    messages = [{"role": "system", "content": "hello"}, *({"role": role, "content": text} for role, text in talk)]
    return "/v1/chat/completions", {"messages": messages, "tools": [{"function": {"name": name}} for name in tools]}


def gemini(talk: Talk, *tools: str) -> tuple[str, dict[str, Any]]:
    contents = [{"role": "model" if role == "assistant" else role, "parts": [{"text": text}]} for role, text in talk]
    declared = [{"functionDeclarations": [{"name": name} for name in tools]}]
    return "/v1beta/models/x:generateContent", {"contents": contents, "tools": declared}


DIALECTS = [(anthropic, "Bash"), (responses, "exec_command"), (chat, "bash"), (gemini, "run_shell_command")]
every_dialect = pytest.mark.parametrize(("dialect", "shell"), DIALECTS, ids=[dialect.__name__ for dialect, _ in DIALECTS])


def ask(model: ModelServer, path: str, body: dict[str, Any], *, streams: bool) -> str:
    if streams and "generateContent" in path:
        path = path.replace("generateContent", "streamGenerateContent")
    elif streams:
        body = {**body, "stream": True}
    request = urllib.request.Request(model.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def texts(data: object) -> str:
    """Every piece of text in an answer, in the order it came: a delta, a text, a content."""
    if isinstance(data, dict):
        own = [value for name, value in data.items() if name in ("text", "content", "delta") and isinstance(value, str)]
        return "".join(own) + "".join(texts(value) for value in data.values())
    return "".join(texts(value) for value in data) if isinstance(data, list) else ""


def deltas(stream: str) -> str:
    """What the stream's pieces make, without the summaries that some dialects close with."""
    lines = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")]
    events = [json.loads(line) for line in lines]
    return "".join(texts(event) for event in events if event.get("type", "delta").endswith("delta"))


# --- the model -----------------------------------------------------------------------------------------------------------


@every_dialect
def test_the_model_answers_by_its_script_in_every_dialect(dialect: Any, shell: str) -> None:
    path, body = dialect([("user", HELLO)], shell)
    with ModelServer(TURNS) as model:
        assert texts(json.loads(ask(model, path, body, streams=False))) == "->relay:Dave hello to you"
        assert deltas(ask(model, path, body, streams=True)) == "->relay:Dave hello to you"
        assert model.times_given("hello") == 1
        until(lambda: len(model.answered) == 2, "both are noted, which is after they were read")
        assert [answered.is_whole for answered in model.answered] == [True, True]


@every_dialect
def test_only_what_is_new_is_answered_and_all_is_counted(dialect: Any, shell: str) -> None:
    path, body = dialect([("user", HELLO), ("assistant", "->relay:Dave hello to you"), ("user", "and now?")], shell)
    with ModelServer(TURNS) as model:
        assert texts(json.loads(ask(model, path, body, streams=False))) == "Noted."
        assert model.given == (HELLO, "and now?")


@every_dialect
def test_a_command_is_asked_for_with_the_tool_of_the_cli(dialect: Any, shell: str) -> None:
    path, body = dialect([("user", "clean up")], "Read", shell)
    with ModelServer(TURNS) as model:
        for streams in (False, True):
            answer = ask(model, path, body, streams=streams)
            assert shell in answer
            assert "rm -rf build" in answer


def test_a_cli_without_tools_is_offered_a_block_of_commands() -> None:
    path, body = chat([("user", "clean up")])
    with ModelServer(TURNS) as model:
        assert "```bash\nrm -rf build\n```" in texts(json.loads(ask(model, path, body, streams=False)))
        assert "```bash\nrm -rf build\n```" in deltas(ask(model, path, body, streams=True))


def test_the_result_of_a_command_gets_what_was_to_be_said_then() -> None:
    path, body = anthropic([("user", "clean up")], "Bash")
    with ModelServer(TURNS) as model:
        ask(model, path, body, streams=False)
        result = [{"type": "tool_result", "tool_use_id": "x", "content": "done"}, {"type": "text", "text": HELLO}]
        more = [{"role": "assistant", "content": "I will."}, {"role": "user", "content": result}]
        answer = ask(model, path, {**body, "messages": body["messages"] + more}, streams=False)
        assert texts(json.loads(answer)) == "It is clean.\n\n->relay:Dave hello to you"


def test_a_question_aside_is_no_part_of_the_conversation() -> None:
    path, body = anthropic([("user", HELLO)])
    with ModelServer(TURNS) as model:
        assert texts(json.loads(ask(model, path, body, streams=False))) == "A title"
        assert model.asked == []


# --- the installer ---------------------------------------------------------------------------------------------------------


def test_the_versions_are_those_of_the_profiles_and_every_cli_can_be_started() -> None:
    manifest = real_clis.read_manifest()
    tested = {name: cli.version for name, cli in manifest.items() if cli.is_tested}
    assert tested == {name: profile_for(name).recorded for name in CLIS}


def test_what_is_installed_is_not_installed_again(tmp_path: Path) -> None:
    cli = real_clis.read_manifest()["claude"]
    assert not real_clis.is_installed(cli, tmp_path)
    cli.programs(tmp_path).mkdir(parents=True)
    (cli.programs(tmp_path) / cli.program).write_text("")
    assert not real_clis.is_installed(cli, tmp_path)
    (tmp_path / cli.name / real_clis.STAMP).write_text(cli.version)
    assert real_clis.is_installed(cli, tmp_path)
    assert not real_clis.is_installed(cli._replace(version="9.9.9"), tmp_path)
    assert run_installer(str(tmp_path), "claude").returncode == 0


def run_installer(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "real_clis.py"), *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_what_is_missing_is_said_with_what_to_do(tmp_path: Path) -> None:
    done = run_installer(str(tmp_path), "codex", PATH=str(tmp_path))
    assert (done.returncode, "codex needs npm. Install Node.js" in done.stderr) == (1, True)
    done = run_installer(str(tmp_path), "kodex")
    assert (done.returncode, "there are claude, codex" in done.stderr) == (1, True)


def test_a_version_that_does_not_answer_is_not_taken_for_installed(tmp_path: Path) -> None:
    """An npm that installs nothing, and one that fails."""
    for name, text in (("node", "echo v22.0.0"), ("npm", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    folder = tmp_path / "clis"
    done = run_installer(str(folder), "codex", PATH=f"{tmp_path}:/bin:/usr/bin")
    assert (done.returncode, "codex was installed and does not run" in done.stderr) == (1, True)
    (tmp_path / "npm").write_text("#!/bin/sh\necho no network >&2\nexit 1\n")
    done = run_installer(str(folder), "codex", PATH=f"{tmp_path}:/bin:/usr/bin")
    assert done.returncode == 1
    assert "npm could not install @openai/codex" in done.stderr
    assert "no network" in done.stderr
    assert not real_clis.is_installed(real_clis.read_manifest()["codex"], folder)


# --- the table -------------------------------------------------------------------------------------------------------------


def test_the_tables_say_what_was_found(tmp_path: Path) -> None:
    found = {
        "tests/x.py::test_door_idle[gemini]": results.Result(True, "typed: it cannot"),
        "tests/x.py::test_message_in[claude]": results.Result(True),
        "tests/x.py::test_message_in[codex]": results.Result(False),
        "tests/x.py::test_read_evidence[claude]": results.Result(True, "transcript"),
        "tests/x.py::test_codex_queue[codex]": results.Result(True),
        "tests/x.py::test_claude_and_codex_talk": results.Result(True),
    }
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- generated: real-clis -->\nold\n<!-- end of real-clis -->\nafter\n")
    results.write(page, results.render(found, {"claude": "1", "codex": "2", "gemini": "3"}))
    assert page.read_text() == (
        "before\n<!-- generated: real-clis -->\n### Typed into the terminal\n\n|  | claude 1 | codex 2 |\n|---|---|---|\n"
        "| a message reaches the model, once | yes | **no** |\n| evidence that it was read | transcript | – |\n\n"
        "### Through their own doors\n\n|  | gemini 3 |\n|---|---|\n"
        "| idle: a turn begins at once, and the reply comes back | typed: it cannot |\n\n"
        "### Of one alone\n\n- codex: `codex queue` is the next door: yes\n"
        "- claude and codex talk to each other, each message once: yes\n"
        "<!-- end of real-clis -->\nafter\n"
    )


def test_every_test_with_real_clis_has_a_name_in_the_tables() -> None:
    named = {*results.TYPED, *results.DOORS, *results.TOOLS, *results.ACP, *results.OWN}
    sources = [path.read_text("utf-8") for path in (ROOT / "tests" / "real_clis").glob("test_*.py")]
    assert {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)} == named
    with pytest.raises(KeyError, match="test_of_no_name"):
        results.render({"tests/x.py::test_of_no_name[claude]": results.Result(True)}, {"claude": "1"})


def test_what_a_cli_cannot_do_belongs_to_a_scene() -> None:
    scenes = {name.removeprefix("test_door_") for name in results.DOORS}
    assert all(set(cli.limits) <= scenes for cli in DOOR_CLIS.values())
    assert {cli.name for cli in DOOR_CLIS.values()} == {name for name in CLIS if profile_for(name).doors}


def test_the_page_has_a_place_for_the_table_and_nothing_failed_in_it() -> None:
    page = (ROOT / "docs" / "real-clis.md").read_text("utf-8")
    assert "<!-- generated: real-clis -->\n### Typed into the terminal\n" in page
    assert results.FAILED not in page
