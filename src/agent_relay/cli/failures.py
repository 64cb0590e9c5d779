"""How a command fails: one sentence that names the way out, and an exit status that scripts can rely on."""

from __future__ import annotations

from agent_relay.cli.formats import join_names
from agent_relay.cli.safe_text import clean_line
from agent_relay.protocol.errors import RelayError

OK = 0
FAILED = 1
USAGE = 2
NOT_RUNNING = 3


class Failure(Exception):  # noqa: N818 - a command's failure is a result, not an error of the program
    def __init__(self, sentence: str, status: int = FAILED) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status


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
        return Failure(clean_line(f"{place}{error.strerror or error}."))
    kind = type(error).__name__
    return Failure(clean_line(f"Something unforeseen went wrong ({kind}: {error}); AGENT_RELAY_DEBUG=1 shows where."))


def _explain_relay_error(error: RelayError) -> Failure:
    from agent_relay.sdk.errors import DaemonNotRunning

    if isinstance(error, DaemonNotRunning):
        return not_running(str(error.details.get("socket", "")))
    near = error.details.get("did_you_mean")
    hint = ""
    if isinstance(near, list) and near:
        hint = f" Did you mean {join_names([str(name) for name in near], 'or')}?"
    elif error.code.name == "AGENT_NOT_FOUND":
        hint = " `agent-relay agents` lists who has."
    return Failure(clean_line(error.message + hint))


def _explain_usage(error: Exception) -> Failure:
    message = clean_line(str(getattr(error, "format_message")()).rstrip())  # noqa: B009 - there is no common base to name
    if message and message[-1] not in ".?!":
        message += "."
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "agent-relay"
    return Failure(f"{message} See: {command} --help", int(getattr(error, "exit_code", USAGE)))
