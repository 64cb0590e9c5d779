"""A PostgreSQL server of the tests' own: a temporary cluster on a Unix socket, one for each process that runs tests.

`server()` starts it when it is first asked for. Every test has a schema of its own in it (`fresh_schema`), so nothing is cleared
between tests. The server refuses to run as root; for root it runs as an unprivileged user.
"""

from __future__ import annotations

import atexit
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "correct-horse/battery"  # of the user `relay`; the user `postgres` needs none
ESCAPED_PASSWORD = "correct-horse%2Fbattery"
_START_S = 60.0
_TLS = Path(__file__).parents[1] / "data" / "tls"
_SETTINGS = {
    "listen_addresses": "", "fsync": "off", "shared_buffers": "16MB", "max_connections": "60", "log_min_messages": "fatal",
    "max_wal_size": "256MB", "ssl_cert_file": "cert.pem", "ssl_key_file": "key.pem",
}  # fmt: skip
_WRITERS = (
    "SELECT {value} FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND (classid::bigint << 32 | objid::bigint) = hashtextextended('agent-relay writer {schema}', 0)"
)
_HBA = "local all postgres trust\nlocal all all scram-sha-256\nhostssl all all 127.0.0.0/8 scram-sha-256\n"


def find_binaries() -> Path:
    """Fails the test where there is no server to run, as CI must have one."""
    for folder in sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: -int(path.split("/")[4])):
        if os.access(os.path.join(folder, "postgres"), os.X_OK):
            return Path(folder)
    found = shutil.which("postgres")
    if found is None:
        pytest.fail("PostgreSQL is not installed. Run `scripts/setup dev tests`, which installs it (Debian: postgresql).")
    return Path(found).resolve().parent


class PostgresServer:
    def __init__(self, **settings: str) -> None:
        self._binaries = find_binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="relay-pg-", dir="/tmp"))
        self._data = self.folder / "data"
        self._port = settings.get("port", "5432")
        self._process: subprocess.Popen[bytes] | None = None
        self._identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = next(entry for entry in pwd.getpwall() if entry.pw_name in {"postgres", "nobody"})
            self._identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self._run("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        (self._data / "pg_hba.conf").write_text(_HBA)
        for name in ("cert.pem", "key.pem"):  # for `ssl = on`
            shutil.copy(_TLS / name, self._data / name)
            os.chmod(self._data / name, 0o600)
            if self._identity:
                os.chown(self._data / name, self._identity["user"], self._identity["group"])
        with open(self._data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in (_SETTINGS | settings).items())
            file.write(f"unix_socket_directories = '{self.folder}'\n")
        self.start()
        self.psql(f"CREATE ROLE relay LOGIN PASSWORD '{PASSWORD}'", "GRANT CREATE ON DATABASE postgres TO relay")

    def _run(self, program: str, *arguments: str, said: str = "") -> str:
        words = [str(self._binaries / program), *arguments]
        done = subprocess.run(
            words, check=False, input=said, capture_output=True, text=True, cwd=self.folder, timeout=120, **self._identity
        )
        assert done.returncode == 0, f"{program}: {done.stderr or done.stdout}"
        return done.stdout

    def start(self) -> None:
        assert self._process is None
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self._data)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, start_new_session=True, **self._identity,
            )  # fmt: skip
        deadline = time.monotonic() + _START_S
        while not self.answers():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL did not start in time"
            time.sleep(0.02)

    def answers(self) -> bool:
        words = [str(self._binaries / "pg_isready"), "-q", "-h", str(self.folder), "-p", self._port, "-U", "postgres"]
        return subprocess.run(words, check=False, timeout=30).returncode == 0

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends every connection at once and in order; SIGQUIT leaves a recovery to the next start."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(number)
            process.wait(30)

    def psql(self, *statements: str) -> list[list[str]]:
        """The rows of the last statement."""
        arguments = [word for statement in statements for word in ("-c", statement)]
        said = self._run(
            "psql", "-h", str(self.folder), "-p", self._port, "-U", "postgres", "-XAtq", "-F", "\t", *arguments, "postgres"
        )
        return [line.split("\t") for line in said.splitlines()]

    def dump(self, schema: str) -> str:
        """As an operator's backup has it, without the words to psql of the newest releases, which others do not know."""
        where = ("-h", str(self.folder), "-p", self._port, "-U", "postgres")
        lines = self._run("pg_dump", *where, f"--schema={schema}", "--no-owner", "postgres").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(("\\restrict", "\\unrestrict")))

    def load(self, dump: str) -> None:
        where = ("-h", str(self.folder), "-p", self._port, "-U", "postgres")
        self._run("psql", *where, "-Xq", "-v", "ON_ERROR_STOP=1", "-1", "-f", "-", "postgres", said=dump)

    def url(self, schema: str, user: str = "postgres", password: str = "", folder: Path | None = None) -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@/postgres?host={folder or self.folder}&schema={schema}"

    def writer_pids(self, schema: str) -> list[int]:
        """The server's processes that write this schema."""
        return [int(pid) for (pid,) in self.psql(_WRITERS.format(value="pid", schema=schema))]

    def end_writers(self, schema: str) -> int:
        """Ends their connections, at whatever moment that is; how many there were."""
        return len(self.psql(_WRITERS.format(value="pg_terminate_backend(pid)", schema=schema)))

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def server() -> PostgresServer:
    started = PostgresServer()
    atexit.register(started.remove)
    return started


def fresh_schema() -> str:
    return f"t_{uuid.uuid4().hex[:12]}"
