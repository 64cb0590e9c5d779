"""Every setting of the daemon, once: its flag, its variable, its key in `config.toml`, its default, and how it is read.

The same parser reads a setting wherever it is given. The command line makes its options from `SETTINGS`, and a test holds
`docs/configuration.md` to it. Which place counts, and what the daemon makes of it, is in `config`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agent_relay.core.rights import parse_rights
from agent_relay.protocol import places
from agent_relay.protocol.durations import parse_duration_ms
from agent_relay.protocol.hosts import is_host_name
from agent_relay.protocol.names import CHANNEL_MARK, is_channel
from agent_relay.protocol.shadows import parse_shadows
from agent_relay.transports.arc.settings import HARD_BYTES as ARC_HARD_BYTES


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


def _servers(text: str) -> tuple[str, ...]:
    found = tuple(part if "//" in part else f"nats://{part}" for part in text.replace(",", " ").split())
    for address in found:
        parts = urlsplit(address)
        if parts.scheme not in {"nats", "tls"} or not parts.hostname or parts.username is not None or parts.path.strip("/"):
            raise ValueError(
                "addresses of NATS servers such as nats://a:4222,nats://b:4222, without credentials: put a token into "
                f"{places.ENV_CLUSTER_TOKEN}, or name a credentials file with --cluster-creds"
            )
    return found


def _hosts(text: str) -> frozenset[str]:
    found = frozenset(text.replace(",", " ").split())
    if not all(part == "*" or is_host_name(part) for part in found):
        raise ValueError("names of hosts, or `*` for all, separated by commas")
    return found


def _subject_part(text: str) -> str:
    if re.fullmatch(r"[a-z0-9-]{1,32}", text) is None:
        raise ValueError("1 to 32 small letters, digits and hyphens")
    return text


def _storage_url(text: str) -> str:
    from agent_relay.storage.postgres.url import check_url  # noqa: PLC0415 - few have one

    return check_url(text)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError("an address and a port such as 127.0.0.1:9464")
    return _host(host), int(port)


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
    may_hold_secret: bool = False  # then no error shows its value

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
    Setting("run_grace", _duration, "15s", "how long agents of a pattern or a run outlive the lost connection of the program "
            "that started them"),
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
    Setting("shadows", parse_shadows, "", "agents that get copies of what others send and receive, as SHADOW:AGENT separated by "
            "commas; see docs/teams.md"),
    Setting("message_retention", _duration, "30d", "how long delivered messages stay in the history"),
    Setting("event_retention", _duration, "7d", "how long events are kept"),
    Setting("event_bytes", _whole(1_048_576), "268435456", "disk space for recorded events, in bytes; beyond that the oldest "
            "are removed"),
    Setting("allowed_uids", _uids, "", "other user ids that may connect and exchange messages, separated by commas"),
    Setting("durability", _one_of("full", "normal"), "full", "full: on disk before the sender is told; normal: survives a crash "
            "of the daemon, but not of the machine"),
    Setting("storage", _one_of("sqlite", "memory", "postgres"), "sqlite", "where messages are kept; postgres needs "
            "storage_url, see docs/postgres.md", "AGENT_RELAY_STORAGE_TYPE"),
    Setting("storage_path", _path, None, "the SQLite file; by default messages.sqlite in the state directory"),
    Setting("storage_url", _storage_url, None, "the PostgreSQL database, such as postgresql://user@host/database; a flag must "
            "not contain the password", may_hold_secret=True),
    Setting("cluster", _servers, "", "NATS servers that the project's daemons on several hosts share, separated by commas; see "
            "docs/cluster.md", may_hold_secret=True),
    Setting("cluster_project", _subject_part, "default", "name of the project in the cluster, the same on every host"),
    Setting("cluster_host", _subject_part, None, "name of this host in the cluster; by default the machine's name"),
    Setting("cluster_control", _hosts, "", "other hosts of the cluster whose people may start, stop, type to and approve what "
            "runs on this one, separated by commas; `*` for all of them"),
    Setting("cluster_replicas", _whole(1, 5), "3", "NATS servers that keep each record of the cluster's log"),
    Setting("cluster_creds", _path, None, "credentials file for NATS (JWT and NKEY, or an NKEY seed); only your user may be able "
            "to read it"),
    Setting("cluster_ca", _path, None, "certificates (PEM) that NATS servers with TLS are checked against; by default "
            "the system's"),
    Setting("cluster_monitor", _address, None, "address and port, such as 127.0.0.1:9464, where this host of a cluster serves "
            "/metrics, /health and /ready without a token"),
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
