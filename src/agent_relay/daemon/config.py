"""The configuration of one daemon: every setting of `settings`, settled.

Precedence: flag, environment, `config.toml` in AGENT_RELAY_HOME, default. The project's `.agent-relay/config.toml` may set only
what `PROJECT_MAY` lists, and only to something tighter.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from agent_relay.core.limits import Limits
from agent_relay.core.policy import Policy
from agent_relay.daemon.config_files import PROJECT_MAY, ConfigFile, name_keys, read_own_file, read_project_file, shorten_notes
from agent_relay.daemon.permission_rules import PERMISSIONS_KEY, read_policy
from agent_relay.daemon.settings import SETTINGS, Setting
from agent_relay.protocol import places
from agent_relay.transports.arc.settings import ArcSettings

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ConfigError(Exception):
    """A setting that cannot be used; the text names it, where it came from, and what it may be."""


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    servers: tuple[str, ...]  # none: the daemon is alone
    project: str
    host: str | None  # None: the machine's name
    replicas: int
    token: str | None = field(repr=False)  # from the environment alone
    creds: str | None
    ca: str | None
    monitor: tuple[str, int] | None = None  # where this host's figures are served


@dataclass(frozen=True, slots=True)
class Config:
    project_root: str
    home: str
    state_dir: str
    socket: str
    storage: str
    storage_path: str
    storage_url: str | None = field(repr=False)  # may hold a password
    cluster: ClusterConfig
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
        run_grace_ms=values["run_grace"],
        spawn_allow=values["spawn_allow"],
        spawn_environment=values["spawn_environment"],
        spawn_unattended=values["spawn_unattended"],
        agent_rights=values["agent_rights"],
        cluster_control=values["cluster_control"],
        message_retention_ms=max(values["message_retention"], values["message_ttl"], values["dedup_window"]),
        allowed_uids=values["allowed_uids"],
        default_channels=values["default_channels"],
        shadows=values["shadows"],
    )
    return Config(
        project_root=project_root,
        home=home,
        state_dir=state_dir,
        socket=socket,
        storage=values["storage"],
        storage_path=values["storage_path"] or os.path.join(state_dir, places.DATABASE_FILE),
        storage_url=_check_storage(values, flags, files),
        cluster=_read_cluster(values, environ),
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
        variables={s.env: environ[s.env] for s in SETTINGS if environ.get(s.env) and not _is_secret(s, environ[s.env])},
    )


def read_setting(name: str, environ: Mapping[str, str], *, project_root: str, home: str) -> Any:
    """One of them, for a command that needs no daemon; raises ConfigError."""
    (setting,) = (setting for setting in SETTINGS if setting.name == name)
    return _settle(setting, {}, environ, _read_files(project_root, home))


def find_differences(
    wanted: Mapping[str, str], flags: Mapping[str, str], variables: Mapping[str, str], *, project_root: str, home: str
) -> list[str]:
    """The wanted settings that a daemon with these flags and variables does not have; raises ConfigError, also for a password
    among them: they are flags of a command."""
    files = _read_files(project_root, home)
    _refuse_password(wanted, files)
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


def _check_storage(values: Mapping[str, Any], flags: Mapping[str, str | None], files: _Files) -> str | None:
    """The database, if it is to be used. A password is accepted only where nobody else can read it."""
    url: str | None = values["storage_url"]
    _refuse_password(flags, files)
    setting = next(setting for setting in SETTINGS if setting.name == "storage_url")
    kept = files.own.content.get(setting.name)
    if kept is not None and _is_secret(setting, str(kept)) and os.stat(files.own.path).st_mode & 0o077:
        raise ConfigError(f"{files.own.path} contains a password, and others can read it. Run: chmod 600 {files.own.path}")
    if values["storage"] == "postgres" and url is None:
        raise ConfigError(f"--storage postgres needs {setting.flag}, or {setting.env}, such as postgresql://user@host/database.")
    return url


def _refuse_password(flags: Mapping[str, str | None], files: _Files) -> None:
    for setting in SETTINGS:
        value = flags.get(setting.name)
        if value is not None and _is_secret(setting, value):
            raise ConfigError(
                f"{setting.flag} must not contain a password: every user of this machine can see it there. Put the password into "
                f"~/.pgpass or PGPASSWORD, or the whole URL into {setting.env} or {files.own.path}."
            )


def _is_secret(setting: Setting, value: str) -> bool:
    if not setting.may_hold_secret:
        return False
    from agent_relay.storage.postgres.url import has_password  # noqa: PLC0415 - few have one

    return has_password(value)


def _read_cluster(values: Mapping[str, Any], environ: Mapping[str, str]) -> ClusterConfig:
    creds = values["cluster_creds"]
    if values["cluster"]:
        if values["storage"] != "sqlite":
            raise ConfigError("--cluster keeps its copy in SQLite; leave out --storage.")
        _require_private(creds)
    return ClusterConfig(
        values["cluster"], values["cluster_project"], values["cluster_host"], values["cluster_replicas"],
        environ.get(places.ENV_CLUSTER_TOKEN) or None, creds, values["cluster_ca"], values["cluster_monitor"],
    )  # fmt: skip


def _require_private(path: str | None) -> None:
    try:
        is_open = path is not None and os.stat(path).st_mode & 0o077
    except OSError as error:
        raise ConfigError(f"--cluster-creds: {path} cannot be read: {error.strerror}.") from None
    if is_open:
        raise ConfigError(f"{path} can be read by others. Run: chmod 600 {path}")


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
        shown = "the value" if setting.may_hold_secret else repr(value)
        raise ConfigError(f"{source}: {shown} is invalid; it must be {error}.") from None


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
