"""One running agent: its process, the connection to it by the Agent Client Protocol, and its session.

Of what the protocol lets a client offer, files and terminals are not offered: an agent has tools of its own for both, with rules
and a sandbox of its own. What we did for it would run outside of them, and as us.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib.util
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, text_block
from acp.schema import (
    ClientCapabilities,
    EnvVariable,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
    McpServerStdio,
    PromptResponse,
)

from agent_relay.interpreter import run_module
from agent_relay.protocol.places import ENV_PREFIX
from agent_relay.protocol.visible_text import clean
from agent_relay.version import __version__

START_S = 110.0  # for the first answer; an adapter from npm takes seconds on an idle machine
END_S = 0.7  # for each of three steps, which together take less than the wrapper waits
MAX_LINE_BYTES = 52_428_800  # what a tool printed comes in one piece
LOG_FILE = "acp-agent.log"
_SHOWN_LINES = 10
_AUTH_REQUIRED = -32000
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)  # before the fork, after which nothing may be loaded


class AgentFailed(Exception):  # noqa: N818 - named by the condition
    """The agent cannot be used; the text says why and what to do, for people."""


class AgentLink:
    """`client` is what the agent may call: `session_update` and `request_permission`. `folder`: where its errors are written."""

    def __init__(self, words: Sequence[str], cwd: str, folder: str, client: Any) -> None:
        self._words = words
        self._cwd = cwd
        self._log_path = os.path.join(folder, LOG_FILE)
        self._client = client
        self._process: asyncio.subprocess.Process | None = None
        self._connection: Any = None
        self._offered = InitializeResponse(protocol_version=PROTOCOL_VERSION)
        self.session_id = ""

    # --- its start -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Raises AgentFailed."""
        log = os.open(self._log_path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            # Its own session: nothing it runs may ask at our terminal, and all of it can be ended together.
            self._process = await asyncio.create_subprocess_exec(
                *self._words, cwd=self._cwd, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log,
                limit=MAX_LINE_BYTES, start_new_session=True, preexec_fn=_die_with_parent,
            )  # fmt: skip
        except OSError as error:
            raise AgentFailed(f"{self._words[0]} cannot be started: {error.strerror or error}.") from None
        finally:
            os.close(log)
        self._connection = connect_to_agent(self._client, self._process.stdin, self._process.stdout)
        self._offered = await self._ask(
            self._connection.initialize(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(
                    fs=FileSystemCapabilities(read_text_file=False, write_text_file=False), terminal=False
                ),
                client_info=Implementation(name="agent-relay", title="Agent Relay", version=__version__),
            )
        )
        if self._offered.protocol_version != PROTOCOL_VERSION:
            raise AgentFailed(
                f"It speaks version {self._offered.protocol_version} of the Agent Client Protocol, and this release version "
                f"{PROTOCOL_VERSION}. Update whichever is older."
            )

    async def open_session(self, known: str) -> bool:
        """Whether the `known` session is gone on with; else a new one is begun. Raises AgentFailed."""
        servers = relay_tools(os.environ)
        if known and self.can_resume:
            try:
                await self._ask(self._connection.load_session(cwd=self._cwd, session_id=known, mcp_servers=servers))
            except AgentFailed:
                if self.has_ended:
                    raise
            else:
                self.session_id = known
                return True
        self.session_id = (await self._ask(self._connection.new_session(cwd=self._cwd, mcp_servers=servers))).session_id
        return False

    async def _ask(self, request: Any) -> Any:
        assert self._process is not None
        asking = asyncio.ensure_future(request)
        ending = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait([asking, ending], timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
        except RequestError as error:
            raise AgentFailed(self._explain(error)) from None
        except ConnectionError:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(ending), END_S)
        finally:
            asking.cancel()
            ending.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)
        raise AgentFailed(self._explain_silence())

    def _explain(self, error: RequestError) -> str:
        if error.code == _AUTH_REQUIRED:
            ways = ", ".join(method.name for method in self._offered.auth_methods or ())
            return (
                f"It wants you to sign in{f' ({ways})' if ways else ''}. Start it once in a terminal without --acp and sign in "
                "there, or set its API key, then start it again."
            )
        return f"It answers with an error: {describe_error(error)}."

    def _explain_silence(self) -> str:
        status = self._process.returncode if self._process is not None else None
        said = self.last_words()
        lines = "".join(f"\n  | {line}" for line in said)
        if status is None:
            return f"It did not answer within {START_S:.0f} s.{lines}"
        return f"It ended with status {status} before it opened a session.{lines}"

    def last_words(self) -> list[str]:
        """The last lines that it wrote besides the protocol."""
        try:
            with open(self._log_path, encoding="utf-8", errors="replace") as file:
                return [clean(line).rstrip() for line in file.read()[-8_000:].splitlines() if line.strip()][-_SHOWN_LINES:]
        except OSError:
            return []

    # --- what it is ----------------------------------------------------------------------------------------------------

    @property
    def can_resume(self) -> bool:
        found = self._offered.agent_capabilities
        return found is not None and bool(found.load_session)

    @property
    def version(self) -> str:
        return self._offered.agent_info.version if self._offered.agent_info is not None else ""

    @property
    def title(self) -> str:
        info = self._offered.agent_info
        return "" if info is None else info.title or info.name

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.returncode is not None

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    # --- its turns -----------------------------------------------------------------------------------------------------

    async def prompt(self, texts: Sequence[str]) -> PromptResponse:
        """Returns at the end of the turn. Raises RequestError, and ConnectionError when the agent has ended.

        Some programs are two processes, and the second keeps the connection when the first is gone: it is ended as well."""
        assert self._process is not None
        if self.has_ended:
            raise ConnectionError
        blocks = [text_block(text) for text in texts]
        asking: asyncio.Future[PromptResponse] = asyncio.ensure_future(
            self._connection.prompt(session_id=self.session_id, prompt=blocks)
        )
        ending = asyncio.ensure_future(self._process.wait())
        try:
            ends: list[asyncio.Future[Any]] = [asking, ending]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                await asyncio.wait([asking], timeout=END_S)  # its last words may still be on their way
            if not asking.done():
                raise ConnectionError
            return asking.result()
        finally:
            asking.cancel()
            ending.cancel()
            await asyncio.gather(asking, ending, return_exceptions=True)

    async def cancel(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._connection.cancel(session_id=self.session_id)

    async def end(self) -> None:
        """Its input is closed, which ends every agent that behaves; whoever is left of it is ended."""
        process = self._process
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), END_S)
                break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if self._connection is not None:
            with contextlib.suppress(Exception):
                await self._connection.close()


def describe_error(error: RequestError) -> str:
    """In a line. What an agent adds for programs is told where it is text."""
    details = error.data.get("details") or error.data.get("message") if isinstance(error.data, dict) else error.data
    words = [str(error), details if isinstance(details, str) and details != str(error) else ""]
    return " ".join(clean(": ".join(filter(None, words))).split())[:300].rstrip(".")


def relay_tools(environ: Mapping[str, str]) -> list[McpServerStdio]:
    """The relay as tools for the agent, where they can be run here; they find who speaks by the variables of this run."""
    if importlib.util.find_spec("mcp") is None:
        return []
    program, *words = run_module("agent_relay", "mcp")
    variables = [EnvVariable(name=name, value=value) for name, value in environ.items() if name.startswith(ENV_PREFIX)]
    return [McpServerStdio(name="agent-relay", command=program, args=words, env=variables)]


def _die_with_parent() -> None:
    """So that a console that is killed leaves no agent behind that works on."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
