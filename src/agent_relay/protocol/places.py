"""Locations, as far as text can tell: names of files and variables, and the rules that join them.

Nothing here looks at a disk. The daemon, the SDK and the command line all use these rules, so they meet.
"""

from __future__ import annotations

import hashlib
import posixpath

from agent_relay.protocol.errors import ErrorCode, RelayError

DEFAULT_HOME = "~/.agent-relay"
PACKAGE_FILES = ("pyproject.toml", "package.json", "Cargo.toml", "go.mod")
MAX_SOCKET_PATH_BYTES = 100  # sun_path holds 108 on Linux and 104 on macOS; beyond that bind() fails

LONGEST_SOCKET_PATH_BYTES = 103  # what fits everywhere, with the zero at its end

SOCKET_FILE = "relay.sock"
SOCKET_LOCK = ".lock"  # behind a socket that lies elsewhere than its state directory: it holds where that is
PID_FILE = "relay.pid"
LOCK_FILE = "relay.lock"
DATABASE_FILE = "messages.sqlite"
ARC_FILE = "arc.sqlite"
EVENTS_FILE = "events.jsonl"
CLUSTER_FILE = "cluster.json"  # the hosts of the cluster, as this one sees them
AGENTS_FILE = "agents.json"
BUDGET_FILE = "budget.json"
MARKS_FILE = "marks.json"
PROJECT_FILE = "project.json"  # which project it is, and how its daemon was started last
HTTP_FILE = "http.json"  # where the HTTP server listens, or why it does not
API_TOKEN_FILE = "api-token"  # noqa: S105 - a file: who may use the HTTP API, and who owns this relay (0600)
PAGE_KEYS_FILE = "page-keys.json"  # browsers that were let in, by the hashes of their keys
SEATS_FILE = "seats.json"  # which processes are agents', so that callers from inside are known
LOG_FILE = "daemon.log"
CLUSTER_RECORDS_FOLDER = "cluster-records"  # the last records of the log that hosts share
CLUSTER_COPY_FOLDER = "cluster-copy"  # of the database, for another host
TEAM_FOLDER = "team"  # a folder for each wrapped agent
CONFIG_FILE = "config.toml"
PROJECT_DIRECTORY = ".agent-relay"

ENV_PREFIX = "AGENT_RELAY_"
ENV_HOME = "AGENT_RELAY_HOME"
ENV_SOCKET = "AGENT_RELAY_SOCKET"
ENV_NAME = "AGENT_RELAY_NAME"
ENV_PEER_UIDS = "AGENT_RELAY_PEER_UIDS"
ENV_TOKEN = "AGENT_RELAY_TOKEN"  # noqa: S105 - the name of a variable
ENV_PROJECT = "AGENT_RELAY_PROJECT"
ENV_DOORS = "AGENT_RELAY_DOORS"
ENV_STRICT_PREFIX = "AGENT_RELAY_STRICT_PREFIX"
ENV_API_TOKEN = "AGENT_RELAY_API_TOKEN"  # noqa: S105 - the name of a variable
ENV_STORAGE_URL = "AGENT_RELAY_STORAGE_URL"
ENV_CLUSTER_TOKEN = "AGENT_RELAY_CLUSTER_TOKEN"  # noqa: S105 - the name of a variable
DATABASE_PASSWORD_VARIABLE = "PGPASSWORD"  # noqa: S105 - as PostgreSQL\'s own programs call it


def project_id(real_root: str) -> str:
    return hashlib.sha256(real_root.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def project_name(root: str) -> str:
    return posixpath.basename(root) or root


def projects_directory(home: str) -> str:
    return posixpath.join(home, "projects")


def state_directory(home: str, real_root: str) -> str:
    return posixpath.join(projects_directory(home), project_id(real_root))


def socket_path(state_dir: str, real_root: str, uid: int) -> str:
    """In the state directory, or, where that path is too long for a socket, in a short place of the user's own."""
    path = posixpath.join(state_dir, SOCKET_FILE)
    if len(path.encode("utf-8", "surrogateescape")) <= MAX_SOCKET_PATH_BYTES:
        return path
    return posixpath.join(short_socket_directory(uid), project_id(real_root), SOCKET_FILE)


def check_socket_path(path: str) -> None:
    """Raises RelayError for one that no socket can have."""
    length = len(path.encode("utf-8", "surrogateescape"))
    if length > LONGEST_SOCKET_PATH_BYTES:
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"The socket path is {length} bytes long, and the system allows "
            f"{LONGEST_SOCKET_PATH_BYTES}: {path}. Choose a shorter one with --socket or {ENV_SOCKET}; without either, the relay "
            "picks one that fits.", length=length, limit=LONGEST_SOCKET_PATH_BYTES,
        )  # fmt: skip


def foreign_folder_note(path: str, uid: int) -> str:
    return f"{path} is ignored: it belongs to another user (uid {uid})."


def short_socket_directory(uid: int) -> str:
    return f"/tmp/agent-relay-{uid}"  # noqa: S108 - 0700 and the owner is checked before it is used
