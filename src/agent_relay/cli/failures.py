"""Failures of commands: one sentence that names the way out, and an exit status that scripts can rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_relay.cli.output.formats import join_names
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.protocol.errors import ErrorCode, RelayError

OK = 0
FAILED = 1
USAGE = 2
NOT_RUNNING = 3
FAILED_CODE = "FAILED"
_CODES = {USAGE: ErrorCode.INVALID_FORMAT.value, NOT_RUNNING: ErrorCode.SERVICE_UNAVAILABLE.value}


class Failure(Exception):  # noqa: N818 - a command's failure is a result, not an error of the program
    """`code` is one of the wire's, or `FAILED` for what only commands know."""

    def __init__(self, sentence: str, status: int = FAILED, code: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status
        self.code = code or _CODES.get(status, FAILED_CODE)
        self.details = details or {}

    def for_programs(self) -> dict[str, Any]:
        """In the shape that errors have over HTTP."""
        known = ErrorCode(self.code) if self.code in ErrorCode.__members__ else None
        return {
            "error": {
                "code": self.code, "category": known.category.value if known else "command", "message": self.sentence,
                "retryable": known.retryable if known else False, "details": self.details,
            }
        }  # fmt: skip


def not_running(socket: str) -> Failure:
    # The way out stands first: a path may be long, and a terminal narrow.
    where = f" (nothing answers at {clean_line(socket)})" if socket else ""
    return Failure(f"The daemon is not running; start it with: agent-relay up{where}", NOT_RUNNING)


def explain_failure(error: Exception) -> Failure:
    """The sentence for anything a command may raise."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, RelayError):
        return _explain_relay_error(error)
    if hasattr(error, "format_message"):  # the command-line library's own: a wrong option, a missing argument
        return _explain_usage(error)
    if isinstance(error, UnicodeEncodeError):
        return Failure("An argument is not valid UTF-8 and cannot be sent.", USAGE)
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return Failure(clean_line(f"{place}{error.strerror or error}."), code=ErrorCode.INTERNAL_ERROR.value)
    kind = type(error).__name__
    return Failure(
        clean_line(f"Unexpected error ({kind}: {error}). Set AGENT_RELAY_DEBUG=1 for a traceback."),
        code=ErrorCode.INTERNAL_ERROR.value,
    )


def _explain_relay_error(error: RelayError) -> Failure:
    from agent_relay.sdk.errors import DaemonNotRunning

    if isinstance(error, DaemonNotRunning):
        return not_running(str(error.details.get("socket", "")))
    near = error.details.get("did_you_mean")
    hint = ""
    if isinstance(near, list) and near:
        hint = f" Did you mean {join_names([str(name) for name in near], 'or')}?"
    elif error.code.name == "AGENT_NOT_FOUND":
        hint = " `agent-relay agents --all` lists all known agents."
    return Failure(clean_line(error.message + hint), code=error.code.value, details=error.details)


def _explain_usage(error: Exception) -> Failure:
    message = clean_line(str(getattr(error, "format_message")()).rstrip())  # noqa: B009 - there is no common base to name
    if message and message[-1] not in ".?!":
        message += "."
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "agent-relay"
    option = str(getattr(error, "option_name", "") or "")
    if option and not option.lstrip("-")[:1].isalnum():  # `->relay:…`, `- an item`: text, not an option
        message += " Put -- before text that begins with a dash."
    return Failure(f"{message} See: {command} --help", int(getattr(error, "exit_code", USAGE)))
