"""Options made from the settings, and the last words of a daemon that did not start."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_relay.cli.commands import up
from agent_relay.cli.main import main
from agent_relay.daemon.settings import SETTINGS, Setting


def test_every_setting_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--help"]) == 0
    shown = capsys.readouterr().out
    for setting in SETTINGS:
        assert f"{setting.flag} " in shown
        assert setting.env in "".join(shown.split()), setting.env


def test_a_new_setting_needs_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "SETTINGS", (*SETTINGS, Setting("brand_new", str, "1", "something new")))

    def command(**settings: str | None) -> int:
        return len(settings)

    with_options = up.with_settings(command)
    assert "brand_new" in with_options.__annotations__


def test_last_words_are_what_is_not_a_line_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "daemon.log"
    log.write_text('{"event": "old"}\nold words\n')
    before = log.stat().st_size
    assert up.last_words(str(log), before) == ""
    with log.open("a") as file:
        file.write('{"event": "listening"}\nTraceback\nagent-relay: The disk is full.\x1b[2J\n{"event": "stopped"}\n')
    assert up.last_words(str(log), before) == "The disk is full.\\x1b[2J"
    assert up.last_words(str(tmp_path / "none"), 0) == ""


def test_a_daemon_that_could_not_even_say_so_had_no_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert up._guess(str(tmp_path), "daemon.log") == "The daemon ended at once; daemon.log may say why."
    monkeypatch.setattr(up.shutil, "disk_usage", lambda _: SimpleNamespace(free=4_096))
    assert up._guess(str(tmp_path), "daemon.log") == f"The daemon ended at once: the disk that holds {tmp_path} is full."
