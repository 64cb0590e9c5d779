"""What a daemon writes down about its project, and what others read there."""

from __future__ import annotations

import json
from pathlib import Path

from agent_relay.daemon.config import Config, find_differences, load_config
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.daemon.project_record import ProjectRecord, find_port_holder, read_record


def config(folder: Path, **flags: str) -> Config:
    environ = {"AGENT_RELAY_MAX_ATTEMPTS": "9", "AGENT_RELAY_API_TOKEN": "secret-secret-secret"}
    where = {"home": str(folder), "state_dir": str(folder), "socket": str(folder / "relay.sock")}
    return load_config(flags, environ, project_root="/code/app", **where)


def test_what_was_given_is_kept_and_no_secret_is(tmp_path: Path) -> None:
    assert read_record(str(tmp_path)) is None
    project = ProjectFile(config(tmp_path, message_ttl="2h"), 1_000)
    project.write()
    project.note_port(3890)
    assert read_record(str(tmp_path)) == ProjectRecord(
        "/code/app", str(tmp_path / "relay.sock"), {"message_ttl": "2h"}, {"AGENT_RELAY_MAX_ATTEMPTS": "9"}, 1_000, 3890
    )
    assert "secret" not in (tmp_path / "project.json").read_text()
    assert (tmp_path / "project.json").stat().st_mode & 0o077 == 0
    assert ProjectFile(config(tmp_path), 2_000).last_port == 3890


def test_a_file_that_is_none_says_nothing(tmp_path: Path) -> None:
    for content in (b"", b"[]", b'{"port": "x"}', b"\xff"):
        (tmp_path / "project.json").write_bytes(content)
        assert read_record(str(tmp_path)) is None


def test_who_holds_a_port(tmp_path: Path) -> None:
    assert find_port_holder(str(tmp_path), 3888) == ""
    for name, port in (("a", 3888), ("b", 3889)):
        folder = tmp_path / "projects" / name
        folder.mkdir(parents=True)
        (folder / "http.json").write_text(json.dumps({"port": port}))
    (tmp_path / "projects" / "b" / "project.json").write_text('{"root": "/code/app"}')
    assert find_port_holder(str(tmp_path), 3889) == "The relay of /code/app listens there."
    assert find_port_holder(str(tmp_path), 3888) == f"The relay of {tmp_path}/projects/a listens there."
    assert find_port_holder(str(tmp_path), 3890) == ""


def test_only_what_really_differs_needs_a_restart(tmp_path: Path) -> None:
    where = {"project_root": str(tmp_path), "home": str(tmp_path)}
    flags, variables = {"message_ttl": "2h"}, {"AGENT_RELAY_MAX_ATTEMPTS": "9"}
    wanted = {"message_ttl": "120m", "max_attempts": "9", "ack_timeout_ms": "5s", "queue_capacity": "7"}
    assert find_differences(wanted, flags, variables, **where) == ["queue_capacity"]
    assert find_differences({"message_ttl": "3h"}, flags, variables, **where) == ["message_ttl"]
