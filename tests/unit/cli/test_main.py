"""The door: exit statuses, closed pipes, Ctrl-C, and no traceback unless asked for."""

from __future__ import annotations

import pytest

from agent_relay.cli import app as app_module
from agent_relay.cli.main import main
from agent_relay.version import __version__


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[str]) -> int:
        raise error

    monkeypatch.setattr(app_module, "run_app", run)


@pytest.mark.parametrize("words", [["--version"], ["--version", "status"]])
def test_the_version(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == f"agent-relay {__version__}\n"


def test_no_command_is_a_question_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sned"], "Did you mean send?"),
        (["send", "Bob"], "Missing argument 'TEXT'"),
        (["send", "Bob", "->relay:Bob hi"], "Put -- before text that begins with a dash."),
        (["status", "--frob"], "No such option: --frob"),
        (["send", "Bob", "x", "--priority", "12"], "--priority"),
        (["up", "--foreground", "--frob"], "No such option: --frob"),
        (["completion", "tcsh"], "tcsh"),
        (["inbox", "--peek", "--follow"], "cannot be combined"),
        (["dead-letters", "retry"], "--all"),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_2(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("agent-relay: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err
    assert "--help" in shown.err


def test_an_unforeseen_error_is_a_sentence(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_RELAY_DEBUG", raising=False)
    fail_with(ZeroDivisionError("oh"), monkeypatch)
    assert main(["status"]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_with_debug_it_is_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_RELAY_DEBUG", "1")
    fail_with(ZeroDivisionError("oh"), monkeypatch)
    with pytest.raises(ZeroDivisionError):
        main(["status"])


def test_ctrl_c(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(KeyboardInterrupt(), monkeypatch)
    assert main(["status"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_serve_both_names(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    assert shown.count("_AGENT_RELAY_COMPLETE=complete_" + shell) >= 2
    assert " agent-relay" in shown
    assert " relay" in shown
