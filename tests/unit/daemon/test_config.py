"""Every setting: where it comes from, what it may be, and how a wrong one is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_relay.core.limits import Limits
from agent_relay.daemon.config import SETTINGS, Config, ConfigError, Setting, load_config
from agent_relay.protocol import places

BY_NAME = {setting.name: setting for setting in SETTINGS}

# setting → (a value that is good, what it becomes, values that are not)
VALUES: dict[str, tuple[str, object, list[str]]] = {
    "max_frame_bytes": ("2048", 2048, ["1023", "0", "-1", "x", "1.5", "1e6", "1073741825", ""]),
    "heartbeat_ms": ("30s", 30_000, ["0", "-1", "soon", "5 minutes", "1.5s", ""]),
    "handshake_timeout_ms": ("250", 250, ["0", "x"]),
    "ack_timeout_ms": ("2m", 120_000, ["0s", "x"]),
    "max_attempts": ("7", 7, ["0", "1001", "x"]),
    "queue_capacity": ("1", 1, ["0", "-5", "10000001", "many"]),
    "queue_bytes": ("65536", 65_536, ["65535", "x"]),
    "max_inflight": ("65536", 65_536, ["0", "65537"]),
    "slow_consumer_ms": ("1h", 3_600_000, ["0", "never"]),
    "resume_ttl": ("7d", 604_800_000, ["0", "x"]),
    "message_ttl": ("90s", 90_000, ["0", "x"]),
    "dedup_window": ("48h", 172_800_000, ["0", "x"]),
    "dedup_ids": ("10", 10, ["0", "x"]),
    "rate_limit": ("0", 0, ["-1", "x"]),
    "loop_slow_after": ("30", 30, ["-1", "x"]),
    "loop_hold_after": ("60", 60, ["-1", "x"]),
    "max_agents": ("3", 3, ["-1", "1001", "x"]),
    "spawns_per_minute": ("0", 0, ["-1", "10001", "x"]),
    "spawn_allow": ("my-agent, /opt/my agent", frozenset({"my-agent", "/opt/my agent"}), ["./agent", "bin/agent"]),
    "spawn_environment": ("LANG, *_KEY", ("LANG", "*_KEY"), []),
    "spawn_unattended": ("yolo, bypassPermissions", ("yolo", "bypassPermissions"), []),
    "doors": ("try", "try", ["", "all", "known,try"]),
    "strict_prefix": ("true", True, ["maybe", "2"]),
    "message_retention": ("60d", 5_184_000_000, ["0", "x"]),
    "event_retention": ("2d", 172_800_000, ["0", "x"]),
    "allowed_uids": ("1000, 1001", frozenset({1000, 1001}), ["me", "1000;1001", "1.5"]),
    "durability": ("normal", "normal", ["FULL", "none", ""]),
    "storage": ("memory", "memory", ["postgresql", "SQLITE", ""]),
    "storage_path": ("/somewhere/x.sqlite", "/somewhere/x.sqlite", []),
    "http": ("no", False, ["maybe", "3888"]),
    "port": ("0", 0, ["-1", "65536", "http", ""]),
    "host": ("::1", "::1", ["a b", "http://127.0.0.1", ""]),
    "cors_origins": (
        "https://a.org, http://localhost:5173/",
        frozenset({"https://a.org", "http://localhost:5173"}),
        ["*", "a.org", "ftp://a.org", "https://a.org/x"],
    ),
    "max_sse": ("1", 1, ["0", "100001", "x"]),
    "tls_cert": ("/somewhere/cert.pem", "/somewhere/cert.pem", []),
    "tls_key": ("/somewhere/key.pem", "/somewhere/key.pem", []),
    "arc": ("no", False, ["maybe"]),
    "arc_rate_limit": ("0", 0, ["-1", "x"]),
    "arc_hourly_limit": ("5", 5, ["-1", "x"]),
    "arc_registrations_per_hour": ("0", 0, ["-1", "x"]),
    "arc_connections_per_address": ("7", 7, ["-1", "x"]),
    "arc_max_bytes": ("1048576", 1_048_576, ["127", "1048577", "x"]),
    "arc_slow_bytes": ("2048", 2_048, ["1023", "x"]),
    "arc_ping_ms": ("500", 500, ["0", "x"]),
    "arc_ephemeral": ("true", True, ["maybe"]),
    "arc_trusted": ("bob-1, al-2", frozenset({"bob-1", "al-2"}), []),
    "arc_hooks": ("a.b:c, d:e", ("a.b:c", "d:e"), []),
    "token_ttl": ("1h", 3_600_000, ["0", "x"]),
    "debug": ("yes", True, ["maybe", "2"]),
}


def settled(config: Config, name: str) -> object:
    """The value a setting has in the end, wherever it is kept."""
    for place in (config.limits, config, config.arc_settings):
        for field in (name, f"{name}_ms", name.removeprefix("arc_")):
            if hasattr(place, field):
                return getattr(place, field)
    raise AssertionError(f"{name} ends nowhere")


class Project:
    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "project", folder / "home"
        (self.root / places.PROJECT_DIRECTORY).mkdir(parents=True)
        self.home.mkdir()

    @property
    def project_file(self) -> Path:
        return self.root / places.PROJECT_DIRECTORY / places.CONFIG_FILE

    @property
    def home_file(self) -> Path:
        return self.home / places.CONFIG_FILE

    def load(self, flags: Mapping[str, str | None] | None = None, environ: Mapping[str, str] | None = None) -> Config:
        return load_config(
            flags or {}, environ or {}, project_root=str(self.root), home=str(self.home), state_dir="/state", socket="/s.sock"
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_every_setting_has_its_values_here() -> None:
    assert set(VALUES) == set(BY_NAME)


def test_names_flags_and_variables_follow_one_rule() -> None:
    for setting in SETTINGS:
        assert setting.flag == "--" + setting.name.replace("_", "-")
        named = {"storage": "AGENT_RELAY_STORAGE_TYPE", "port": "AGENT_RELAY_DASHBOARD_PORT"}
        assert setting.env == named.get(setting.name, "AGENT_RELAY_" + setting.name.upper())
        assert setting.help
        assert not setting.help.endswith(".")


def test_the_defaults_are_those_of_the_core(project: Project) -> None:
    config = project.load()
    defaults = Limits()
    for field in dataclasses.fields(Limits):
        assert getattr(config.limits, field.name) == getattr(defaults, field.name), field.name
    assert (config.storage, config.durability, config.debug) == ("sqlite", "full", False)
    assert config.storage_path == "/state/messages.sqlite"
    assert config.file("x") == "/state/x"


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
@pytest.mark.parametrize("source", ["flag", "environment", "project", "home"])
def test_every_setting_is_heard_from_every_source(project: Project, setting: Setting, source: str) -> None:
    text, value, _ = VALUES[setting.name]
    flags, environ = {}, {}
    match source:
        case "flag":
            flags = {setting.name: text}
        case "environment":
            environ = {setting.env: text}
        case "project":
            project.project_file.write_text(f'{setting.name} = "{text}"\n')
        case _:
            project.home_file.write_text(f'{setting.name} = "{text}"\n')
    if source == "project" and setting.is_for_owner:
        with pytest.raises(ConfigError, match=f"{setting.name} cannot be set in a project's own file; put it into .*/home/"):
            project.load(flags, environ)
        return
    assert settled(project.load(flags, environ), setting.name) == value


def test_what_agents_may_be_started_with_is_for_the_owner_alone(project: Project) -> None:
    assert {name for name, setting in BY_NAME.items() if setting.is_for_owner} == {
        "spawn_allow", "spawn_environment", "spawn_unattended", "doors", "strict_prefix", "arc_hooks", "arc_trusted"
    }  # fmt: skip
    project.home_file.write_text('spawn_unattended = ["yolo"]\n')
    project.project_file.symlink_to(project.home_file)  # the project is the user's home directory
    assert project.load().limits.spawn_unattended == ("yolo",)


def test_the_nearer_source_wins(project: Project) -> None:
    def capacity(**sources: str) -> int:
        project.home_file.write_text(f"queue_capacity = {sources['home']}\n" if "home" in sources else "")
        project.project_file.write_text(f"queue_capacity = {sources['project']}\n" if "project" in sources else "")
        environ = {"AGENT_RELAY_QUEUE_CAPACITY": sources["environment"]} if "environment" in sources else {}
        return project.load({"queue_capacity": sources.get("flag")}, environ).limits.queue_capacity

    assert capacity(flag="1", environment="2", project="3", home="4") == 1
    assert capacity(environment="2", project="3", home="4") == 2
    assert capacity(project="3", home="4") == 3
    assert capacity(home="4") == 4
    assert capacity() == 1_000


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, (_, _, wrong) in VALUES.items() for text in wrong])
def test_nonsense_is_refused_in_a_sentence_that_helps(project: Project, name: str, text: str) -> None:
    setting = BY_NAME[name]
    with pytest.raises(ConfigError) as by_flag:
        project.load({name: text})
    sentence = str(by_flag.value)
    assert setting.flag in sentence
    assert repr(text) in sentence
    assert "it must be " in sentence
    assert sentence.endswith(".")
    if text:
        with pytest.raises(ConfigError, match=setting.env):
            project.load({}, {setting.env: text})
    else:
        project.load({}, {setting.env: text})  # a variable that is set to nothing counts as not set


def test_toml_may_be_written_with_its_own_types(project: Project) -> None:
    project.project_file.write_text(
        'queue_capacity = 5\ndebug = true\nallowed_uids = [1, 2]\nheartbeat_ms = 700\nresume_ttl = "1h"\n'
    )
    config = project.load()
    limits = config.limits
    assert (limits.queue_capacity, config.debug, limits.allowed_uids) == (5, True, frozenset({1, 2}))
    assert (limits.heartbeat_ms, limits.resume_ttl_ms) == (700, 3_600_000)


@pytest.mark.parametrize("value", ["true", "1.5", '"x"', "{ a = 1 }", "2024-01-01", '["x"]'])
def test_a_wrong_type_in_a_file_is_refused_and_the_file_named(project: Project, value: str) -> None:
    project.project_file.write_text(f"queue_capacity = {value}\n")
    with pytest.raises(ConfigError, match=r"queue_capacity in .*config\.toml"):
        project.load()


@pytest.mark.parametrize("which", ["project", "home"])
@pytest.mark.parametrize("content", ["queue_capacty = 5\n", "[limits]\nqueue_capacity = 5\n"])
def test_an_unknown_key_is_refused_and_named(project: Project, which: str, content: str) -> None:
    path = project.project_file if which == "project" else project.home_file
    path.write_text(content)
    with pytest.raises(ConfigError) as raised:
        project.load()
    assert str(path) in str(raised.value)
    assert "queue_capacty" in str(raised.value) or "limits" in str(raised.value)


@pytest.mark.parametrize("content", [b"this is not toml", b"\xff\xfe", b"a = "])
def test_a_file_that_is_no_toml_is_refused(project: Project, content: bytes) -> None:
    project.home_file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"config\.toml"):
        project.load()


def test_a_directory_in_the_file_s_place_is_refused(project: Project) -> None:
    project.home_file.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        project.load()


def test_history_is_kept_at_least_as_long_as_anything_refers_to_it(project: Project) -> None:
    config = project.load({"message_retention": "2h", "message_ttl": "10h", "dedup_window": "1h"})
    assert config.limits.message_retention_ms == 36_000_000
    config = project.load({"message_retention": "2h", "message_ttl": "1h", "dedup_window": "3h"})
    assert config.limits.message_retention_ms == 10_800_000


def test_paths_may_begin_at_home(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert project.load({"storage_path": "~/x.sqlite"}).storage_path == "/somewhere/x.sqlite"


def test_other_machines_are_let_in_with_a_token_alone(project: Project) -> None:
    with pytest.raises(ConfigError, match="AGENT_RELAY_API_TOKEN"):
        project.load({"host": "0.0.0.0"})
    assert project.load({"host": "0.0.0.0", "http": "false"}).api_token is None
    assert project.load({"host": "0.0.0.0"}, {"AGENT_RELAY_API_TOKEN": "s3cret"}).api_token == "s3cret"
    assert project.load({"host": "localhost"}).api_token is None
    for unusable in ("spa ced ", "tab\tbed", "ümlaut"):
        with pytest.raises(ConfigError, match="plain ASCII"):
            project.load({}, {"AGENT_RELAY_API_TOKEN": unusable})
