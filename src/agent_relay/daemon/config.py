"""Every setting of the daemon, once: its flag, its variable, its key in `config.toml`, its default.

Precedence: flag, environment, `config.toml` in AGENT_RELAY_HOME, default. The project's `.agent-relay/config.toml` may set only
what `PROJECT_MAY` lists, and only to something tighter.
The command line makes its options from `SETTINGS`, and a test holds `docs/configuration.md` to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from agent_relay.core.limits import Limits
from agent_relay.core.policy import Policy
from agent_relay.core.rights import parse_rights
from agent_relay.daemon.config_files import PROJECT_MAY, ConfigFile, name_keys, read_own_file, read_project_file, shorten_notes
from agent_relay.daemon.permission_rules import PERMISSIONS_KEY, read_policy
from agent_relay.protocol import places
from agent_relay.protocol.durations import parse_duration_ms
from agent_relay.protocol.names import CHANNEL_MARK, is_channel
from agent_relay.transports.arc.settings import HARD_BYTES as ARC_HARD_BYTES
from agent_relay.transports.arc.settings import ArcSettings

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ConfigError(Exception):
    """A setting that cannot be used; the text names it, where it came from, and what it may be."""


def _whole(least: int, most: int = 2**53) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise ValueError(f"a whole number of at least {least}" if most == 2**53 else f"a whole number from {least} to {most}")
        return value

    return parse


def _duration(text: str) -> int:
    try:
        value = parse_duration_ms(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ValueError("a duration such as 500 (milliseconds), 30s, 5m, 24h or 7d")
    return value


def _text(text: str) -> str:
    return text


def _project(text: str) -> str:
    if re.fullmatch(r"[a-z0-9-]{1,32}", text) is None:
        raise ValueError("1 to 32 small letters, digits and hyphens")
    return text


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(" or ".join(choices))
        return text

    return parse


def _doors(text: str) -> str:
    """`try` is what `probe` was called before it was the default."""
    found: str = _one_of("probe", "known", "off")("probe" if text == "try" else text)
    return found


def _uids(text: str) -> frozenset[int]:
    parts = text.replace(",", " ").split()
    if not all(part.isdecimal() for part in parts):
        raise ValueError("user ids separated by commas")
    return frozenset(int(part) for part in parts)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _programs(text: str) -> frozenset[str]:
    """A comma alone separates them: a path may have spaces in it."""
    found = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not all("/" not in part or part.startswith("/") for part in found):
        raise ValueError("program names or absolute paths, separated by commas")
    return found


def _folders(text: str) -> tuple[str, ...]:
    """Links resolved, as whatever is compared with them will be."""
    found = [os.path.expanduser(part.strip()) for part in text.split(",") if part.strip()]
    if not all(os.path.isabs(path) for path in found):
        raise ValueError("absolute folder paths, separated by commas")
    return tuple(os.path.realpath(path) for path in found)


def _channels(text: str) -> tuple[str, ...]:
    """`none`, which an environment can say as well, or channels; the `#` may be left out, as a shell takes it for a comment."""
    words = [] if text.strip().lower() in {"none", "off", "false"} else text.replace(",", " ").split()
    found = [word if word.startswith(CHANNEL_MARK) else CHANNEL_MARK + word for word in words]
    if not all(is_channel(word) for word in found):
        raise ValueError("channels such as #general, separated by commas, or none")
    return tuple(found)


def _path(text: str) -> str:
    return os.path.abspath(os.path.expanduser(text))


def _switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    raise ValueError("true or false")


def _host(text: str) -> str:
    host = text.strip().strip("[]")
    if not host or any(character.isspace() or character in "/@" for character in host):
        raise ValueError("an address such as 127.0.0.1, or a host name of this machine")
    return host


def _origins(text: str) -> frozenset[str]:
    found = [part.rstrip("/") for part in text.replace(",", " ").split()]
    for origin in found:
        scheme, separator, rest = origin.partition("://")
        if scheme not in {"http", "https"} or not separator or not rest or "/" in rest or "*" in rest:
            raise ValueError("origins such as https://example.org, separated by commas")
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Setting:
    name: str  # the config key; the flag is --name with dashes
    parse: Callable[[str], Any]
    default: str | None
    help: str
    variable: str = ""
    is_switch: bool = False  # the flag alone turns it on

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def env(self) -> str:
        return self.variable or places.ENV_PREFIX + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("max_frame_bytes", _whole(1_024, 2**30), "1048576", "largest frame accepted from a client, in bytes"),
    Setting("heartbeat_ms", _duration, "5s", "silence after which a client is pinged; after twice that it is disconnected"),
    Setting("handshake_timeout_ms", _duration, "10s", "time a new connection has to send HELLO"),
    Setting("ack_timeout_ms", _duration, "5s", "time a recipient has to acknowledge a message before it is sent again"),
    Setting("max_attempts", _whole(1, 1_000), "5", "delivery attempts per message and connection"),
    Setting("queue_capacity", _whole(1, 10_000_000), "1000", "messages waiting for one recipient before senders are refused"),
    Setting("queue_bytes", _whole(65_536), "268435456", "bytes waiting for one recipient before senders are refused"),
    Setting("max_inflight", _whole(1, 65_536), "256", "unacknowledged deliveries in flight to one recipient"),
    Setting("slow_consumer_ms", _duration, "30s", "time without progress after which a slow reader is disconnected"),
    Setting("resume_ttl", _duration, "24h", "how long a session can be resumed after its last disconnect"),
    Setting("message_ttl", _duration, "24h", "how long an undelivered message is kept before it becomes a dead letter"),
    Setting("dedup_window", _duration, "24h", "how long a sender's message ids are remembered"),
    Setting("dedup_ids", _whole(1, 10_000_000), "100000", "how many message ids per sender are remembered"),
    Setting("rate_limit", _whole(0, 10_000_000), "0", "messages per second per connection; 0 means no limit"),
    Setting("loop_slow_after", _whole(0, 1_000_000), "30", "loop guard: after this many messages in a row in which wrapped "
            "agents only answer each other, further ones are slowed; 0 means never"),
    Setting("loop_hold_after", _whole(0, 1_000_000), "60", "loop guard: after this many such messages, further ones are held "
            "until there is new input; 0 means never"),
    Setting("max_agents", _whole(0, 1_000), "20", "maximum number of running agents that the daemon started"),
    Setting("spawns_per_minute", _whole(0, 10_000), "30", "maximum number of agents the daemon starts per minute"),
    Setting("spawn_allow", _programs, "", "programs that may be started besides the CLIs the relay knows, separated by commas"),
    Setting("spawn_roots", _folders, "", "folders outside the project in which agents may be started, separated by commas"),
    Setting("spawn_environment", _words, "*_API_KEY,*_MODEL,LANG,LC_*,TZ,NO_COLOR", "variables that may be set for a started "
            "agent, separated by commas; `*` matches anything"),
    Setting("spawn_unattended", _words, "", "permission modes without prompts, such as bypassPermissions, that agents may be "
            "started in, separated by commas"),
    Setting("agent_rights", parse_rights, "*:spawn", "what agents may do besides sending messages, as NAME:RIGHT separated "
            "by commas; see docs/permissions.md"),
    Setting("sandbox", _switch, "false", "run every agent in a sandbox (bubblewrap, Linux); see docs/terminals.md",
            is_switch=True),
    Setting("sandbox_network", _one_of("on", "off"), "on", "whether sandboxed agents can use the network"),
    Setting("sandbox_home", str, "ro", "home directory of sandboxed agents: ro, rw, none, or paths in it that are writable "
            "while the rest is hidden, separated by commas"),
    Setting("doors", _doors, "probe", "better ways into a CLI than typing: probe uses those that pass their probe, known only "
            "those of tested versions, off none"),
    Setting("strict_prefix", _switch, "false", "accept only commands with the run's nonce from agents' screens",
            is_switch=True),
    Setting("default_channels", _channels, "#general", "channels that every new agent joins by itself, separated by commas, or "
            "none"),
    Setting("message_retention", _duration, "30d", "how long delivered messages stay in the history"),
    Setting("event_retention", _duration, "7d", "how long events are kept"),
    Setting("event_bytes", _whole(1_048_576), "268435456", "disk space for recorded events, in bytes; beyond that the oldest "
            "are removed"),
    Setting("allowed_uids", _uids, "", "other user ids that may connect and exchange messages, separated by commas"),
    Setting("durability", _one_of("full", "normal"), "full", "full: on disk before the sender is told; normal: survives a crash "
            "of the daemon, but not of the machine"),
    Setting("storage", _one_of("sqlite", "memory"), "sqlite", "where messages are kept", "AGENT_RELAY_STORAGE_TYPE"),
    Setting("storage_path", _path, None, "the SQLite file; by default messages.sqlite in the state directory"),
    Setting("cluster", _text, None, "NATS servers that this project's daemons on several hosts share, separated by commas, such as "
            "nats://a:4222,nats://b:4222"),
    Setting("cluster_project", _project, "default", "name of the project in the cluster: the same on every host"),
    Setting("cluster_host", _project, None, "name of this host in the cluster; by default the machine's name"),
    Setting("cluster_replicas", _whole(1, 5), "3", "NATS servers that keep each record of the cluster's log"),
    Setting("http", _switch, "true", "serve the HTTP API"),
    Setting("port", _whole(0, 65_535), None, "port of the HTTP API; by default the one it had last, or the next free one from "
            "3888; 0 picks any free one", "AGENT_RELAY_DASHBOARD_PORT"),
    Setting("host", _host, "127.0.0.1", "address the HTTP API listens on; any address but loopback lets other machines in"),
    Setting("no_auth", _switch, "false", "let every user of this machine use the HTTP API without a token", is_switch=True),
    Setting("cors_origins", _origins, "", "other websites that may use the HTTP API, such as https://example.org, separated by "
            "commas"),
    Setting("max_sse", _whole(1, 100_000), "100", "maximum number of concurrent event streams over HTTP"),
    Setting("http_connections", _whole(16, 60_000), "4096", "maximum number of concurrent HTTP connections"),
    Setting("http_connections_per_address", _whole(8, 60_000), "512", "maximum number of HTTP connections without a token "
            "per address; the oldest is closed to make room for a new one"),
    Setting("http_request_ms", _duration, "30s", "time an HTTP client has to send a complete request; open WebSockets and "
            "streams are not affected"),
    Setting("tls_cert", _path, None, "certificate (PEM) for HTTPS and WSS; requires tls_key"),
    Setting("tls_key", _path, None, "private key (PEM) of the certificate"),
    Setting("arc", _switch, "true", "accept agents over WebSocket (ARC) on the port of the HTTP API"),
    Setting("arc_open", _switch, "false", "let anybody who reaches the port register over ARC, without the API token or an "
            "invitation", is_switch=True),
    Setting("arc_rate_limit", _whole(0, 10_000_000), "100", "ARC: messages per minute per agent; 0 means no limit"),
    Setting("arc_hourly_limit", _whole(0, 10_000_000), "1000", "ARC: messages per hour per agent; 0 means no limit"),
    Setting("arc_registrations_per_hour", _whole(0, 10_000_000), "30", "ARC: registrations per address and hour; 0 means no "
            "limit"),
    Setting("arc_connections_per_address", _whole(0, 10_000_000), "10000", "ARC: connections per address; 0 means no limit"),
    Setting("arc_max_bytes", _whole(128, ARC_HARD_BYTES), "65536", "ARC: largest message accepted, in bytes"),
    Setting("arc_slow_bytes", _whole(1_024), "1048576", "ARC: bytes that may wait for an agent before it is disconnected"),
    Setting("arc_ping_ms", _duration, "25s", "ARC: time between pings; an agent silent for 1.8 times that is disconnected"),
    Setting("arc_ephemeral", _switch, "false", "ARC: keep nothing for agents that are not connected", is_switch=True),
    Setting("arc_trusted", _words, "", "ARC: ids of agents without a rate limit, separated by commas"),
    Setting("arc_hooks", _words, "", "ARC: hooks as module:attribute or /file.py:attribute, separated by commas; see "
            "docs/arc.md"),
    Setting("token_ttl", _duration, None, "ARC: how long a token is valid; unlimited by default"),
    Setting("debug", _switch, "false", "log the type and ids of every frame"),
)  # fmt: skip
FLAG_NAMES = {setting.flag: setting.name for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Config:
    project_root: str
    home: str
    state_dir: str
    socket: str
    storage: str
    storage_path: str
    cluster: str | None  # addresses of NATS servers
    cluster_project: str
    cluster_host: str | None
    cluster_replicas: int
    durability: Literal["full", "normal"]
    debug: bool
    http: bool
    port: int | None  # None: the daemon finds one
    host: str
    no_auth: bool
    cors_origins: frozenset[str]
    max_sse: int
    http_connections: int
    http_connections_per_address: int
    http_request_ms: int
    api_token: str | None  # from the environment alone: flags can be seen by others; None: the daemon makes one
    limits: Limits
    event_retention_ms: int
    event_bytes: int
    spawn_roots: tuple[str, ...]
    sandbox: bool  # a wall around every agent that the daemon starts
    sandbox_network: str
    sandbox_home: str
    doors: str  # for the agents that the daemon starts; others look it up by themselves
    strict_prefix: bool  # likewise
    permissions: Policy
    tls_cert: str | None
    tls_key: str | None
    arc: bool
    arc_settings: ArcSettings
    arc_hooks: tuple[str, ...]
    notes: tuple[str, ...]  # for the owner: what the project's file wanted and did not get
    flags: Mapping[str, str]  # what was given on the command line, by name
    variables: Mapping[str, str]  # what was given in the environment, by variable

    def file(self, name: str) -> str:
        return os.path.join(self.state_dir, name)

    @property
    def tls(self) -> tuple[str, str] | None:
        """Certificate and key."""
        return None if self.tls_cert is None or self.tls_key is None else (self.tls_cert, self.tls_key)

    @property
    def is_exposed(self) -> bool:
        """Others on the network can read what is said to the HTTP server."""
        return self.http and self.host not in _LOOPBACK and self.tls is None


def load_config(
    flags: Mapping[str, str | None], environ: Mapping[str, str], *, project_root: str, home: str, state_dir: str, socket: str
) -> Config:
    """Settles every setting; raises ConfigError for the first that cannot be used."""
    files = _read_files(project_root, home)
    permissions = _read_permissions(files)
    values = {setting.name: _settle(setting, flags, environ, files) for setting in SETTINGS}
    limits = Limits(
        max_frame_bytes=values["max_frame_bytes"],
        heartbeat_ms=values["heartbeat_ms"],
        handshake_timeout_ms=values["handshake_timeout_ms"],
        ack_timeout_ms=values["ack_timeout_ms"],
        max_attempts=values["max_attempts"],
        queue_capacity=values["queue_capacity"],
        queue_bytes=values["queue_bytes"],
        max_inflight=values["max_inflight"],
        slow_consumer_ms=values["slow_consumer_ms"],
        resume_ttl_ms=values["resume_ttl"],
        message_ttl_ms=values["message_ttl"],
        dedup_window_ms=values["dedup_window"],
        dedup_ids=values["dedup_ids"],
        rate_limit=values["rate_limit"],
        loop_slow_after=values["loop_slow_after"],
        loop_hold_after=values["loop_hold_after"],
        max_agents=values["max_agents"],
        spawns_per_minute=values["spawns_per_minute"],
        spawn_allow=values["spawn_allow"],
        spawn_environment=values["spawn_environment"],
        spawn_unattended=values["spawn_unattended"],
        agent_rights=values["agent_rights"],
        message_retention_ms=max(values["message_retention"], values["message_ttl"], values["dedup_window"]),
        allowed_uids=values["allowed_uids"],
        default_channels=values["default_channels"],
    )
    return Config(
        project_root=project_root,
        home=home,
        state_dir=state_dir,
        socket=socket,
        storage=values["storage"],
        storage_path=values["storage_path"] or os.path.join(state_dir, places.DATABASE_FILE),
        cluster=values["cluster"],
        cluster_project=values["cluster_project"],
        cluster_host=values["cluster_host"],
        cluster_replicas=values["cluster_replicas"],
        durability=values["durability"],
        debug=values["debug"],
        http=values["http"],
        port=values["port"],
        host=values["host"],
        no_auth=values["no_auth"],
        cors_origins=values["cors_origins"],
        max_sse=values["max_sse"],
        http_connections=values["http_connections"],
        http_connections_per_address=values["http_connections_per_address"],
        http_request_ms=values["http_request_ms"],
        api_token=_read_token(environ, values["host"], no_auth=values["no_auth"]),
        limits=limits,
        event_retention_ms=values["event_retention"],
        event_bytes=values["event_bytes"],
        spawn_roots=values["spawn_roots"],
        sandbox=values["sandbox"],
        sandbox_network=values["sandbox_network"],
        sandbox_home=values["sandbox_home"],
        doors=values["doors"],
        strict_prefix=values["strict_prefix"],
        permissions=permissions,
        tls_cert=values["tls_cert"],
        tls_key=values["tls_key"],
        arc=values["arc"],
        arc_settings=_read_arc(values),
        arc_hooks=values["arc_hooks"],
        notes=shorten_notes(files.notes),
        flags={name: value for name, value in flags.items() if value is not None},
        variables={setting.env: environ[setting.env] for setting in SETTINGS if environ.get(setting.env)},
    )


def read_setting(name: str, environ: Mapping[str, str], *, project_root: str, home: str) -> Any:
    """One of them, for a command that needs no daemon; raises ConfigError."""
    (setting,) = (setting for setting in SETTINGS if setting.name == name)
    return _settle(setting, {}, environ, _read_files(project_root, home))


def find_differences(
    wanted: Mapping[str, str], flags: Mapping[str, str], variables: Mapping[str, str], *, project_root: str, home: str
) -> list[str]:
    """The wanted settings that a daemon with these flags and variables does not have; raises ConfigError."""
    files = _read_files(project_root, home)
    chosen = [setting for setting in SETTINGS if setting.name in wanted]
    return [s.name for s in chosen if _settle(s, wanted, {}, files) != _settle(s, flags, variables, files)]


def find_notes(project_root: str, home: str) -> tuple[str, ...]:
    """Notes about what a daemon that is started now would leave out of the project's file; raises ConfigError."""
    return load_config({"http": "false"}, {}, project_root=project_root, home=home, state_dir="", socket="").notes


def check_tls(config: Config) -> None:
    """Raises ConfigError where the server could not be started with these files."""
    if (config.tls_cert is None) != (config.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key must be given together.")
    if config.tls is None:
        return
    import ssl  # noqa: PLC0415 - takes a while, and few need it

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*config.tls)
    except OSError as error:  # SSLError is one
        raise ConfigError(f"{config.tls_cert} and {config.tls_key} cannot be loaded: {error}.") from None


def _read_arc(values: Mapping[str, Any]) -> ArcSettings:
    return ArcSettings(
        open=values["arc_open"],
        rate_limit=values["arc_rate_limit"],
        hourly_limit=values["arc_hourly_limit"],
        registrations_per_hour=values["arc_registrations_per_hour"],
        connections_per_address=values["arc_connections_per_address"],
        max_bytes=values["arc_max_bytes"],
        max_frame_bytes=values["max_frame_bytes"],
        slow_bytes=values["arc_slow_bytes"],
        ping_ms=values["arc_ping_ms"],
        token_ttl_ms=values["token_ttl"],
        ephemeral=values["arc_ephemeral"],
        trusted=frozenset(values["arc_trusted"]),
    )


def _read_token(environ: Mapping[str, str], host: str, *, no_auth: bool) -> str | None:
    token = environ.get(places.ENV_API_TOKEN) or None
    if token is not None and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise ConfigError(f"{places.ENV_API_TOKEN} is invalid; use printable ASCII characters without surrounding spaces.")
    if no_auth and host not in _LOOPBACK:
        raise ConfigError(f"--no-auth works only on loopback, and --host {host} lets other machines in; remove one of them.")
    return token


def _read_permissions(files: _Files) -> Policy:
    try:
        return read_policy(files.project, files.own, files.notes)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _settle(setting: Setting, flags: Mapping[str, str | None], environ: Mapping[str, str], files: _Files) -> Any:
    for source, value in ((setting.flag, flags.get(setting.name)), (setting.env, environ.get(setting.env) or None)):
        if value is not None:
            return _parse(setting, source, value)
    given = files.own.content.get(setting.name)
    if given is not None:
        value = _parse(setting, f"{setting.name} in {files.own.path}", given)
    else:
        value = None if setting.default is None else setting.parse(setting.default)
    return _tighten(setting, value, files)


def _tighten(setting: Setting, value: Any, files: _Files) -> Any:
    """The value after the project's file, which may only tighten it."""
    wanted, may = files.project.content.get(setting.name), PROJECT_MAY.get(setting.name)
    if wanted is None or may is None:
        return value
    try:
        tighter = _parse(setting, f"{setting.name} in {files.project.path}", wanted)
    except ConfigError as error:
        files.notes.append(f"{error} It is ignored.")
        return value
    except ValueError as error:  # a number too long to be written down
        files.notes.append(f"{files.project.path}: {setting.name} is ignored: {error}.")
        return value
    if not may(tighter, value):
        files.notes.append(
            f"{files.project.path}: {setting.name} = {tighter} is ignored: a project may only lower it (now {value}). "
            f"To raise it, put it into {files.own.path}."
        )
        return value
    return tighter


def _parse(setting: Setting, source: str, value: Any) -> Any:
    if isinstance(value, list):
        value = ",".join(str(part) for part in value)
    try:
        return setting.parse(str(value))
    except ValueError as error:
        raise ConfigError(f"{source}: {value!r} is invalid; it must be {error}.") from None


class _Files(NamedTuple):
    project: ConfigFile
    own: ConfigFile
    notes: list[str]  # what of the project's was left out, and why


def _read_files(project_root: str, home: str) -> _Files:
    notes: list[str] = []
    try:
        own = read_own_file(home)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    known = {setting.name for setting in SETTINGS} | {PERMISSIONS_KEY}
    for key in own.content:
        if key not in known:
            raise ConfigError(f"{own.path}: unknown setting {key!r}; docs/configuration.md lists all of them.")
    project = read_project_file(project_root, home, notes)
    unknown = [key for key in project.content if key not in known]
    if unknown:
        notes.append(f"{project.path}: {name_keys(unknown)} is ignored: unknown setting.")
    forbidden = [setting.name for setting in SETTINGS if setting.name in project.content and setting.name not in PROJECT_MAY]
    if forbidden:
        notes.append(
            f"{project.path}: {name_keys(forbidden)} is ignored: a project may not set it. To set it, put it into {own.path}."
        )
    return _Files(project, own, notes)
