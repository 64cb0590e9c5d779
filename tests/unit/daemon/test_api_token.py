"""The API's token: made once, kept for the owner alone, and never taken from a file that others could read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent_relay.daemon.api_token import settle_api_token
from agent_relay.daemon.config import Config, load_config
from agent_relay.protocol.places import API_TOKEN_FILE, ENV_API_TOKEN
from agent_relay.sdk.owner import read_api_token

KEPT = "k" * 43


def config(folder: Path, **environ: str) -> Config:
    return load_config({}, environ, project_root=str(folder), home=str(folder), state_dir=str(folder), socket="")


def test_it_is_made_at_the_first_start_and_stays(tmp_path: Path) -> None:
    token = settle_api_token(config(tmp_path))
    assert len(token) >= 43
    assert read_api_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / API_TOKEN_FILE).stat().st_mode) == 0o600
    assert settle_api_token(config(tmp_path)) == token


def test_two_relays_do_not_share_one(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    assert settle_api_token(config(tmp_path)) != settle_api_token(config(tmp_path / "other"))


def test_that_of_the_environment_counts_and_is_found_in_the_file(tmp_path: Path) -> None:
    made = settle_api_token(config(tmp_path))
    assert settle_api_token(config(tmp_path, **{ENV_API_TOKEN: "s3cret"})) == "s3cret" != made
    assert read_api_token(tmp_path) == "s3cret"
    assert stat.S_IMODE((tmp_path / API_TOKEN_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("said", ["", "short", "with space " * 4, "\x00" * 43, "ü" * 43])
def test_a_broken_file_is_made_anew(tmp_path: Path, said: str) -> None:
    (tmp_path / API_TOKEN_FILE).write_text(said)
    (tmp_path / API_TOKEN_FILE).chmod(0o600)
    assert settle_api_token(config(tmp_path)) != said.strip()
    assert len(read_api_token(tmp_path) or "") >= 43


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_one_that_others_could_read_is_made_anew(tmp_path: Path, mode: int) -> None:
    file = tmp_path / API_TOKEN_FILE
    file.write_text(KEPT)
    file.chmod(mode)
    assert settle_api_token(config(tmp_path)) != KEPT
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_is_not_followed_and_a_pipe_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(KEPT)
    (tmp_path / "elsewhere").chmod(0o600)
    (tmp_path / API_TOKEN_FILE).symlink_to(tmp_path / "elsewhere")
    assert settle_api_token(config(tmp_path)) != KEPT
    assert (tmp_path / "elsewhere").read_text() == KEPT
    (tmp_path / API_TOKEN_FILE).unlink()
    os.mkfifo(tmp_path / API_TOKEN_FILE, 0o600)
    assert len(settle_api_token(config(tmp_path))) >= 43


def test_without_a_file_there_is_none_to_read(tmp_path: Path) -> None:
    assert read_api_token(tmp_path) is None
    (tmp_path / API_TOKEN_FILE).write_bytes(b"\xff")
    assert read_api_token(tmp_path) is None
