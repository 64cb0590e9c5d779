"""Wrappers as processes: each agent that is asked for gets one of its own, in a session of its own, and a thread that waits.

A wrapper outlives the daemon. Its rows are in `sessions.json`, and how it ended it writes into a file itself, since only a
parent is told by the system. A program is never more than a name that was looked up: no shell, and no arguments but those of
the permission mode and the model.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec

from agent_relay.daemon.config import Config
from agent_relay.daemon.directories import make_private_directory
from agent_relay.daemon.logs import logger
from agent_relay.daemon.processes import send_signal, start_mark, wait_for_end
from agent_relay.daemon.shelves import FileShelf
from agent_relay.interpreter import run_module
from agent_relay.ports.agents import AgentListener, SessionRow
from agent_relay.ports.documents import Shelf
from agent_relay.protocol import places
from agent_relay.protocol.clis import ACP
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.models import choose_model
from agent_relay.protocol.names import show
from agent_relay.protocol.permission_modes import PermissionMode, modes_of
from agent_relay.repository import belongs_to

SESSIONS_FILE = "sessions.json"
ENDS_FOLDER = "sessions"
# Of the agent the daemon may itself have been started by; the wrapper sets its own. With the token of HTTP an agent could
# approve what it asks itself.
_NOT_INHERITED = {
    places.ENV_NAME, places.ENV_TOKEN, "AGENT_RELAY_OUTBOX", "AGENT_RELAY_INBOX", places.ENV_SOCKET, places.ENV_API_TOKEN,
    places.ENV_STORAGE_URL,
}  # fmt: skip
_NO_WORD = "Its wrapper ended before it started; the daemon's log may say why."


class WrapperProcesses:
    """`ports.AgentService`. `post` brings what a thread has to say into a turn of the loop."""

    def __init__(
        self, config: Config, post: Callable[[Callable[[], None]], None], listener: AgentListener, shelf: Shelf | None = None
    ) -> None:
        self._config = config
        self._post = post
        self._listener = listener
        self._shelf = shelf or FileShelf(config.file(SESSIONS_FILE))
        self._saved = b""

    def load(self) -> list[SessionRow]:
        """The agents that the daemon before us saved; none where they cannot be read."""
        make_private_directory(self._config.file(ENDS_FOLDER))
        try:
            content = self._shelf.load()
            return msgspec.json.decode(content, type=list[SessionRow]) if content else []
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            logger.warning("sessions_unreadable", extra={"relay_fields": {"error": str(error)}})
            return []

    # --- ports.AgentService -----------------------------------------------------------------------------------------------

    def save(self, sessions: Sequence[SessionRow]) -> None:
        content = msgspec.json.encode(sessions)
        if content == self._saved:
            return
        try:
            self._shelf.save(content)
            self._saved = content
        except OSError as error:
            logger.warning("sessions_file_failed", extra={"relay_fields": {"error": str(error)}})

    def start(self, session: SessionRow, environment: Mapping[str, str]) -> None:
        import shutil  # noqa: PLC0415 - not before somebody wants an agent: it loads every kind of compression

        program = shutil.which(session.cli)
        if program is None:
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"{show(session.cli)} is not installed: the daemon's PATH has no such program.",
                field="payload.cli", reason="cli_not_found", cli=session.cli,
            )  # fmt: skip
        session.cwd = find_folder(session.cwd, self._config.project_root, self._config.spawn_roots)
        kept_back = _NOT_INHERITED | ({places.DATABASE_PASSWORD_VARIABLE} if self._config.storage == "postgres" else set())
        inherited = {name: value for name, value in os.environ.items() if name not in kept_back}
        mode = modes_of(session.cli)[session.permission_mode] if session.permission_mode is not None else PermissionMode()
        own = {
            places.ENV_PROJECT: self._config.project_root, places.ENV_DOORS: self._config.doors,
            places.ENV_STRICT_PREFIX: str(self._config.strict_prefix).lower(),
        }  # fmt: skip
        model = choose_model(session.cli, session.model)
        environ = inherited | own | dict(environment) | mode.environment | model.environment
        words = [*self._words(session, program), *mode.arguments, *model.arguments]
        self._in_thread(session, lambda: self._run(session.id, words, session.cwd, environ))

    def adopt(self, session: SessionRow) -> None:
        pid, mark = session.pid, session.pid_started or start_mark(session.pid)
        session.pid_started = mark
        self._in_thread(session, lambda: self._watch(session.id, pid, mark))

    def stop(self, session: SessionRow, *, force: bool) -> None:
        """The wrapper ends its program by itself when it is asked to."""
        number = signal.SIGKILL if force else signal.SIGTERM
        send_signal(session.pid, session.pid_started, number, to_group=force)

    # --- in threads -------------------------------------------------------------------------------------------------------

    def _in_thread(self, session: SessionRow, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name=f"session-{session.name}", daemon=True).start()

    def _run(self, id_: str, words: list[str], cwd: str, environ: dict[str, str]) -> None:
        listener = self._listener
        reading, writing = os.pipe()
        try:
            # Its own session, so that nothing that ends the daemon takes the agent along.
            process = subprocess.Popen(  # noqa: S603 - ourselves, and a program that was looked up
                run_module("agent_relay", "wrap", f"--ready-descriptor={writing}", *words), cwd=cwd, env=environ,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                pass_fds=(writing,),
            )  # fmt: skip
        except OSError as error:
            os.close(reading)
            why = f"{error.strerror}."
            self._post(lambda: listener.failed(id_, why))
            return
        finally:
            os.close(writing)
        mark = start_mark(process.pid)
        self._post(lambda: listener.launched(id_, process.pid, mark))
        with os.fdopen(reading, "rb") as pipe:
            told = _read_word(pipe.read())
        if "name" in told:
            self._post(lambda: listener.running(id_))
        else:
            sentence = str(told.get("sentence") or _NO_WORD)
            self._post(lambda: listener.failed(id_, sentence))
        code = process.wait()
        self._take_end(id_)
        if "name" in told:
            self._post(lambda: listener.ended(id_, code))

    def _watch(self, id_: str, pid: int, mark: str) -> None:
        wait_for_end(pid, mark)
        code = self._take_end(id_)
        self._post(lambda: self._listener.ended(id_, code))

    def _words(self, session: SessionRow, program: str) -> list[str]:
        config = self._config
        return [
            f"--session={session.id}", f"--end-file={self._end_file(session.id)}", f"--name={session.name}",
            f"--backend={session.backend}", f"--socket={config.socket}", f"--state-dir={config.state_dir}",
            *(["--acp"] if session.transport == ACP else []), *self._wall(session), "--", program,
        ]  # fmt: skip

    def _wall(self, session: SessionRow) -> list[str]:
        """Recorded: a daemon with other settings does not change what the agent was started with."""
        config = self._config
        if session.sandbox is None and not config.sandbox:
            return []
        usual = {"network": config.sandbox_network, "home": config.sandbox_home}
        rules = session.sandbox = usual | (session.sandbox or {})
        return ["--sandbox", f"--sandbox-network={rules['network']}", f"--sandbox-home={rules['home']}"]

    def _end_file(self, id_: str) -> str:
        return os.path.join(self._config.file(ENDS_FOLDER), f"{id_}.end")

    def _take_end(self, id_: str) -> int | None:
        """The end of an agent, as its wrapper says."""
        path = self._end_file(id_)
        try:
            with open(path, "rb") as file:
                code = msgspec.json.decode(file.read(), type=int)
        except (OSError, msgspec.MsgspecError):
            return None
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return code


def find_folder(wanted: str, project: str, roots: Sequence[str]) -> str:
    """The folder in which an agent is started: the project, another worktree of its repository, or one that the owner listed,
    wherever links may lead. Raises RelayError.

    A CLI does what the files of its folder say, so to choose the folder is to choose what runs."""
    try:
        path = os.path.realpath(os.path.join(project, wanted))
    except ValueError:  # no path at all
        path = ""
    own = os.path.realpath(project)
    is_inside = any(path == root or path.startswith(root.rstrip("/") + "/") for root in (own, *roots))
    if not is_inside and not belongs_to(path, own):
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"{show(wanted, 200)} is outside the project ({show(project, 200)}) and its worktrees, "
            "where agents are started. The daemon's owner can allow more folders: --spawn-roots, or spawn_roots in config.toml.",
            field="payload.cwd", reason="cwd_not_allowed", setting="spawn_roots",
        )  # fmt: skip
    if not os.path.isdir(path):
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"The folder {show(path)} does not exist.", field="payload.cwd", reason="cwd_not_found"
        )  # fmt: skip
    return path


def _read_word(said: bytes) -> dict[str, object]:
    """The words of a wrapper about its start."""
    try:
        told = json.loads(said) if said else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
