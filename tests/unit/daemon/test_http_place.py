"""Where HTTP listens, as everybody is told it."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from agent_relay.daemon.config import Config, load_config
from agent_relay.daemon.http_place import HttpPlace
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.transports.http.port import PortUnusable


def config(folder: Path, **flags: str) -> Config:
    where = {"home": str(folder), "state_dir": str(folder), "socket": str(folder / "relay.sock")}
    return load_config(flags, {}, project_root="/code/app", **where)


def place(folder: Path, **flags: str) -> HttpPlace:
    found = config(folder, **flags)
    return HttpPlace(found, ProjectFile(found, 0))


def said(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "http.json").read_text()))


def test_the_port_is_the_same_the_next_time(tmp_path: Path) -> None:
    first = place(tmp_path)
    listener = first.listen()
    assert listener is not None
    port = listener.getsockname()[1]
    first.announce(port)
    assert said(tmp_path) == {"url": f"http://127.0.0.1:{port}", "host": "127.0.0.1", "port": port, "certificate": None}
    listener.close()
    again = place(tmp_path)
    assert not (tmp_path / "http.json").exists()  # what an earlier life said is not true any more
    listener = again.listen()
    assert listener is not None
    assert listener.getsockname()[1] == port
    listener.close()
    again.leave()


def test_without_http_it_says_why(tmp_path: Path) -> None:
    assert place(tmp_path).is_wanted
    unwanted = place(tmp_path, http="false")
    assert not unwanted.is_wanted
    unwanted.refuse("The daemon was started without HTTP.")
    assert said(tmp_path) == {"url": None, "reason": "The daemon was started without HTTP."}
    unwanted.leave()
    assert not (tmp_path / "http.json").exists()


def test_a_port_that_is_taken_is_not_had(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(PortUnusable, match="in use"):
        place(tmp_path, port=str(other.getsockname()[1])).listen()


def test_everybody_is_warned_where_no_token_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place(tmp_path, no_auth="true").announce(3888)
    assert "no token" in str(said(tmp_path)["warning"])
    assert "WARNING" in capsys.readouterr().err
