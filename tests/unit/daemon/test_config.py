"""Every setting: where it comes from, what it may be, and how a wrong one is told."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_relay.core.limits import Limits
from agent_relay.daemon.config import Config, ConfigError, load_config
from agent_relay.daemon.config_files import PROJECT_MAY
from agent_relay.daemon.settings import SETTINGS, Setting
from agent_relay.protocol import places
from agent_relay.protocol.shadows import Shadowing

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
    "run_grace": ("2m", 120_000, ["0s", "x"]),
    "spawn_allow": ("my-agent, /opt/my agent", frozenset({"my-agent", "/opt/my agent"}), ["./agent", "bin/agent"]),
    "spawn_roots": ("/somewhere, /else where", ("/somewhere", "/else where"), ["here", "./x, /y"]),
    "spawn_environment": ("LANG, *_KEY", ("LANG", "*_KEY"), []),
    "spawn_unattended": ("yolo, bypassPermissions", ("yolo", "bypassPermissions"), []),
    "agent_rights": ("Lead:approve, *:spawn", frozenset({("lead", "approve"), ("*", "spawn")}), ["Lead", "Lead:all", ":spawn"]),
    "sandbox": ("true", True, ["maybe"]),
    "sandbox_network": ("off", "off", ["", "none"]),
    "sandbox_home": ("none", "none", []),
    "doors": ("known", "known", ["", "all", "known,off"]),
    "strict_prefix": ("true", True, ["maybe", "2"]),
    "message_retention": ("60d", 5_184_000_000, ["0", "x"]),
    "event_retention": ("2d", 172_800_000, ["0", "x"]),
    "event_bytes": ("2000000", 2_000_000, ["1000", "x"]),
    "allowed_uids": ("1000, 1001", frozenset({1000, 1001}), ["me", "1000;1001", "1.5"]),
    "shadows": (
        "Log:Ann, Log:W*:incoming",
        (Shadowing("Log", "Ann"), Shadowing("Log", "W*", "incoming")),
        ["Log", "Log:Ann:up", "#a:b"],
    ),
    "default_channels": ("#dev, news", ("#dev", "#news"), ["#", "a b#c", "#_x"]),
    "durability": ("normal", "normal", ["FULL", "none", ""]),
    "storage": ("memory", "memory", ["postgresql", "SQLITE", ""]),
    "storage_url": ("postgresql://me@host/db", "postgresql://me@host/db", ["mysql://me:s3cret@host/db", "x", ""]),
    "cluster": (
        "nats://a:4222, b",
        ("nats://a:4222", "nats://b"),
        ["nats://me:s3cret@a:4222", "http://a", "nats://", "nats://token@a", "nats://a/x"],
    ),
    "cluster_project": ("shop-2", "shop-2", ["Shop", "a.b", "", "x" * 33]),
    "cluster_host": ("laptop", "laptop", ["my laptop", "*", ">"]),
    "cluster_control": ("b, laptop-2", frozenset({"b", "laptop-2"}), ["My Laptop", "b.c"]),
    "cluster_replicas": ("1", 1, ["0", "6", "x"]),
    "cluster_creds": ("/somewhere/relay.creds", "/somewhere/relay.creds", []),
    "cluster_ca": ("/somewhere/ca.pem", "/somewhere/ca.pem", []),
    "cluster_monitor": ("[::1]:9464", ("::1", 9464), ["9464", ":9464", "localhost", "localhost:x", "localhost:70000"]),
    "storage_path": ("/somewhere/x.sqlite", "/somewhere/x.sqlite", []),
    "http": ("no", False, ["maybe", "3888"]),
    "port": ("0", 0, ["-1", "65536", "http", ""]),
    "host": ("::1", "::1", ["a b", "http://127.0.0.1", ""]),
    "no_auth": ("true", True, ["maybe"]),
    "cors_origins": (
        "https://a.org, http://localhost:5173/",
        frozenset({"https://a.org", "http://localhost:5173"}),
        ["*", "a.org", "ftp://a.org", "https://a.org/x"],
    ),
    "max_sse": ("1", 1, ["0", "100001", "x"]),
    "http_connections": ("100", 100, ["15", "60001", "x"]),
    "http_connections_per_address": ("100", 100, ["7", "60001", "x"]),
    "http_request_ms": ("1m", 60_000, ["0", "soon"]),
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
    "arc_open": ("true", True, ["maybe"]),
    "arc_ephemeral": ("true", True, ["maybe"]),
    "arc_trusted": ("bob-1, al-2", frozenset({"bob-1", "al-2"}), []),
    "arc_hooks": ("a.b:c, d:e", ("a.b:c", "d:e"), []),
    "token_ttl": ("1h", 3_600_000, ["0", "x"]),
    "debug": ("yes", True, ["maybe", "2"]),
}


def settled(config: Config, name: str) -> object:
    """The value a setting has in the end, wherever it is kept."""
    found = [(place, field) for place in (config.limits, config, config.arc_settings) for field in (name, f"{name}_ms")]
    parts = [(config.cluster, name.removeprefix("cluster_")), (config.arc_settings, name.removeprefix("arc_"))]
    found = [(config.cluster, "servers")] if name == "cluster" else found
    for place, field in [*found, *parts]:
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
@pytest.mark.parametrize("source", ["flag", "environment", "home"])
def test_every_setting_is_heard_from_every_source(project: Project, setting: Setting, source: str) -> None:
    text, value, _ = VALUES[setting.name]
    flags, environ = {}, {}
    match source:
        case "flag":
            flags = {setting.name: text}
        case "environment":
            environ = {setting.env: text}
        case _:
            project.home_file.write_text(f'{setting.name} = "{text}"\n')
    assert settled(project.load(flags, environ), setting.name) == value


def test_the_owner_s_file_is_not_the_project_s_where_it_is_both(project: Project) -> None:
    project.home_file.write_text('spawn_unattended = ["yolo"]\n')
    project.project_file.symlink_to(project.home_file)  # the project is the user's home directory
    config = project.load()
    assert (config.limits.spawn_unattended, config.notes) == (("yolo",), ())


# --- the project's own file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BY_NAME.keys() - PROJECT_MAY.keys()))
def test_what_is_not_on_the_list_is_not_for_a_project(project: Project, name: str) -> None:
    plain = project.load()
    project.project_file.write_text(f'{name} = "{VALUES[name][0]}"\n')
    config = project.load()
    assert dataclasses.replace(config, notes=(), permissions=plain.permissions) == plain
    (note,) = config.notes
    assert f"'{name}' is ignored: a project may not set it" in note
    assert str(project.home_file) in note


def test_nothing_that_opens_is_on_the_list() -> None:
    assert set(PROJECT_MAY) == {
        "queue_capacity", "queue_bytes", "rate_limit", "loop_slow_after", "loop_hold_after", "max_agents", "spawns_per_minute",
        "arc_rate_limit", "arc_hourly_limit", "arc_registrations_per_hour", "arc_connections_per_address", "arc_max_bytes",
    }  # fmt: skip


@pytest.mark.parametrize("name", PROJECT_MAY)
@pytest.mark.parametrize("base", ["default", "home"])
def test_what_is_on_the_list_can_be_lowered_and_not_raised(project: Project, name: str, base: str) -> None:
    if base == "home":
        project.home_file.write_text(f"{name} = 66000\n" if name.endswith("_bytes") else f"{name} = 700\n")
    if name == "arc_max_bytes":
        project.home_file.write_text(f"{name} = 1000\n")
    owners = settled(project.load(), name)
    assert isinstance(owners, int)
    least = 65_536 if name == "queue_bytes" else 128 if name == "arc_max_bytes" else 1
    project.project_file.write_text(f"{name} = {least}\n")
    assert settled(project.load(), name) == least
    assert project.load().notes == ()
    if owners:
        project.project_file.write_text(f"{name} = {owners + 1}\n")
        config = project.load()
        assert settled(config, name) == owners
        assert f"may only lower it (now {owners})" in config.notes[0]


@pytest.mark.parametrize(
    "name", ["rate_limit", "loop_slow_after", "loop_hold_after", "arc_rate_limit", "arc_connections_per_address"]
)
def test_a_limit_cannot_be_taken_away(project: Project, name: str) -> None:
    project.home_file.write_text(f"{name} = 5\n")
    project.project_file.write_text(f"{name} = 0\n")
    config = project.load()
    assert settled(config, name) == 5
    assert len(config.notes) == 1


def test_a_flag_and_a_variable_go_before_it(project: Project) -> None:
    project.project_file.write_text("max_agents = 0\n")
    assert project.load().limits.max_agents == 0
    assert project.load({"max_agents": "30"}).limits.max_agents == 30
    assert project.load({}, {"AGENT_RELAY_MAX_AGENTS": "30"}).limits.max_agents == 30


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"this is not toml", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"queue_capacty = 5", "'queue_capacty'"),
        (b"[limits]\nqueue_capacity = 5", "'limits'"),
        (b'max_agents = "x"', "it must be"),
        (b"max_agents = { a = 1 }", "it must be"),
        (b"a" * 300_000, "larger"),
        (b"a = " + b"[" * 100_000, "cannot be read"),
        (b"max_agents = 0x" + b"f" * 100_000, "limit"),
        (b"[permissions]\ntimeout = 0x" + b"f" * 100_000, "timeout"),
        (b"[[permissions.rules]]\ndecision = 0x" + b"f" * 100_000, "permissions cannot be used"),
        (b'"\\u001b[2J\\u202e" = 1', r"'\x1b[2J\u202e'"),
        (b"permissions = 5", "permissions cannot be used"),
    ],
)
def test_what_cannot_be_used_of_it_is_noted_and_stops_nothing(project: Project, content: bytes, word: str) -> None:
    project.project_file.write_bytes(content)
    (note,) = project.load().notes
    assert word in note
    assert str(project.project_file) in note
    assert "ignored" in note


def test_it_is_not_read_through_a_link_out_of_the_project(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.toml"
    elsewhere.write_text("max_agents = 1\n")
    project.project_file.symlink_to(elsewhere)
    config = project.load()
    assert config.limits.max_agents == 20
    assert "links out of the project" in config.notes[0]
    project.project_file.unlink()
    inside = project.project_file.with_name("other.toml")
    inside.write_text("max_agents = 1\n")
    project.project_file.symlink_to(inside)
    assert project.load().limits.max_agents == 1


def test_a_pipe_in_its_place_keeps_nobody_waiting(project: Project) -> None:
    os.mkfifo(project.project_file)
    assert "is not a regular file" in project.load().notes[0]
    project.project_file.unlink()
    project.project_file.mkdir()
    assert "is ignored" in project.load().notes[0]


def test_notes_are_as_long_as_somebody_can_read(project: Project) -> None:
    rule = '[[permissions.rules]]\ntools = "bash"\ndecision = "approve"\n'
    project.project_file.write_text(f'max_agents = "{"x" * 10_000}"\n' + rule * 100)
    notes = project.load().notes
    assert len(notes) == 11
    assert notes[-1] == "91 more notes are not shown."
    assert max(map(len, notes)) < 700


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
    assert (repr(text) in sentence) != setting.may_hold_secret
    assert "it must be " in sentence
    assert sentence.endswith(".")
    if text:
        with pytest.raises(ConfigError, match=setting.env):
            project.load({}, {setting.env: text})
    else:
        project.load({}, {setting.env: text})  # a variable that is set to nothing counts as not set


def test_toml_may_be_written_with_its_own_types(project: Project) -> None:
    project.home_file.write_text(
        'queue_capacity = 5\ndebug = true\nallowed_uids = [1, 2]\nheartbeat_ms = 700\nresume_ttl = "1h"\n'
    )
    config = project.load()
    limits = config.limits
    assert (limits.queue_capacity, config.debug, limits.allowed_uids) == (5, True, frozenset({1, 2}))
    assert (limits.heartbeat_ms, limits.resume_ttl_ms) == (700, 3_600_000)


@pytest.mark.parametrize("value", ["true", "1.5", '"x"', "{ a = 1 }", "2024-01-01", '["x"]'])
def test_a_wrong_type_in_a_file_is_refused_and_the_file_named(project: Project, value: str) -> None:
    project.home_file.write_text(f"queue_capacity = {value}\n")
    with pytest.raises(ConfigError, match=r"queue_capacity in .*config\.toml"):
        project.load()


@pytest.mark.parametrize("content", ["queue_capacty = 5\n", "[limits]\nqueue_capacity = 5\n"])
def test_an_unknown_key_is_refused_and_named(project: Project, content: str) -> None:
    path = project.home_file
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


def test_without_a_token_nobody_is_let_in_from_other_machines(project: Project) -> None:
    with pytest.raises(ConfigError, match="--no-auth works only on loopback"):
        project.load({"host": "0.0.0.0", "no_auth": "true"})
    assert project.load({"no_auth": "true"}).no_auth
    assert not project.load({"host": "0.0.0.0"}).no_auth
    assert project.load({"host": "0.0.0.0"}, {"AGENT_RELAY_API_TOKEN": "s3cret"}).api_token == "s3cret"
    assert project.load({"host": "localhost"}).api_token is None
    for unusable in ("spa ced ", "tab\tbed", "ümlaut"):
        with pytest.raises(ConfigError, match="printable ASCII"):
            project.load({}, {"AGENT_RELAY_API_TOKEN": unusable})


def test_a_database_needs_its_url(project: Project) -> None:
    with pytest.raises(ConfigError, match="needs --storage-url, or AGENT_RELAY_STORAGE_URL"):
        project.load({"storage": "postgres"})
    assert (
        project.load({"storage": "postgres"}, {"AGENT_RELAY_STORAGE_URL": "postgresql:///db"}).storage_url == "postgresql:///db"
    )


def test_a_password_is_taken_only_from_where_nobody_else_sees_it(project: Project) -> None:
    url = "postgresql://me:s3cret@host/db"
    with pytest.raises(ConfigError, match="must not contain a password") as refusal:
        project.load({"storage_url": url})
    assert "s3cret" not in str(refusal.value)
    config = project.load({}, {"AGENT_RELAY_STORAGE_URL": url, "AGENT_RELAY_STORAGE_TYPE": "postgres"})
    assert config.storage_url == url
    assert "s3cret" not in repr(config)
    assert config.variables == {"AGENT_RELAY_STORAGE_TYPE": "postgres"}  # these are written down, for `restart`
    project.home_file.write_text(f'storage_url = "{url}"\n')
    project.home_file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        project.load()
    project.home_file.chmod(0o600)
    assert project.load().storage_url == url


def test_no_default_channels_can_be_said_in_a_word(project: Project) -> None:
    assert project.load({"default_channels": "none"}).limits.default_channels == ()


def test_a_cluster_keeps_its_secrets(project: Project, tmp_path: Path) -> None:
    config = project.load({"cluster": "nats://a"}, {"AGENT_RELAY_CLUSTER_TOKEN": "s3cret"})
    assert config.cluster.token == "s3cret"
    assert "s3cret" not in repr(config)
    assert not any("s3cret" in value for value in config.variables.values())
    creds = tmp_path / "relay.creds"
    with pytest.raises(ConfigError, match="cannot be read"):
        project.load({"cluster": "nats://a", "cluster_creds": str(creds)})
    creds.write_text("secret")
    creds.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        project.load({"cluster": "nats://a", "cluster_creds": str(creds)})
    creds.chmod(0o600)
    assert project.load({"cluster": "nats://a", "cluster_creds": str(creds)}).cluster.creds == str(creds)
    with pytest.raises(ConfigError, match="leave out --storage"):
        project.load({"cluster": "nats://a", "storage": "memory"})
