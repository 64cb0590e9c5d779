"""Programs that must not be given a message, known by their arguments: what is typed into them is run, or steers them.

Pure. At the start there is only what the person asked for; while it runs the system says who really reads the terminal
(`backends.foreground`), behind whatever it was started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct

from agent_relay.terminal.backends.terminal import Foreground


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class _Family(Struct, frozen=True):
    """The way an interpreter reads its arguments; letters stand for options that may share one dash."""

    inline: str = ""  # code to run follows
    module: str = ""  # the name of a module follows
    interactive: str = ""  # it goes on to read the terminal, whatever else it runs
    values: str = ""  # something else follows
    long_values: frozenset[str] = frozenset()
    long_inline: frozenset[str] = frozenset()
    long_interactive: frozenset[str] = frozenset()


class _Task(Enum):
    NONE = 1  # it reads the terminal and runs that
    INLINE = 2
    FILE = 3


_SHELL = _Family("c", values="oO", long_values=frozenset({"--rcfile", "--init-file", "-C", "--init-command"}))
_PYTHON = _Family("c", "m", "i", "WX")
_FAMILIES = {
    **dict.fromkeys(_words("sh bash zsh fish dash ksh mksh tcsh csh ash rbash nu xonsh elvish"), _SHELL),
    **dict.fromkeys(_words("python pypy ipython bpython ptpython"), _PYTHON),
    "pwsh": _Family(long_inline=frozenset({"-c", "-command"}), long_interactive=frozenset({"-noexit"})),
    "node": _Family(
        "ep", interactive="i", values="rC", long_values=frozenset({"--require", "--import", "--loader", "--conditions"}),
        long_inline=frozenset({"--eval", "--print"}), long_interactive=frozenset({"--interactive"}),
    ),
    "ruby": _Family("e", values="IrCEW"),
    "perl": _Family("eE", interactive="d", values="MmIxCF0li"),
    "lua": _Family("e", interactive="i", values="l"),
    "php": _Family("r", interactive="a", values="dczf"),
    "julia": _Family("eE", interactive="i", values="JLCtpH"),
    **dict.fromkeys(_words("deno bun racket guile ocaml octave scala clojure sbcl tclsh swipl"), _Family("e")),
}  # fmt: skip
_SUBCOMMANDS = {"deno": ("repl",), "bun": ("repl",), "node": ("inspect", "debug")}
_REPL_MODULES = _words("code pdb asyncio IPython ptpython bpython xonsh sqlite3 ipdb pudb")
# Whatever they are started with, they run what is typed.
_CONSOLES = _words(
    "irb pry psql mysql mariadb sqlite sqlite3 ghci gdb lldb pdb R jshell iex erl mongosh mongo redis-cli bc dc ftp "
    "sftp maxima utop ed at parted fdisk jdb groovysh cqlsh sqlplus"
)
# Another terminal is behind them, or another machine: nobody here can see what reads there.
_HIDERS = _words(
    "ssh mosh mosh-client telnet rlogin rsh autossh sshpass nc ncat socat cu minicom picocom screen tmux zellij dtach "
    "abduco script rlwrap expect unbuffer docker podman nerdctl kubectl oc lxc machinectl virsh vagrant sudo doas su "
    "runuser login pkexec"
)
_FULL_SCREEN = _words(
    "vi vim nvim view vimdiff nano pico emacs micro helix hx kak joe less more most man info top htop btop atop watch "
    "mc ranger nnn lf lazygit tig fzf ncdu dialog whiptail passwd ssh-add gpg"
)
_PASSING = _words("nice ionice env nohup setsid stdbuf timeout time chrt taskset busybox toybox exec")
_NO_PROGRAM = re.compile(r"[-+\d]|\w+=")
_VERSION = re.compile(r"[\d.]+$")


def waits_for_line(foreground: Foreground) -> bool:
    """Whether a plain program waits for a line, and none that would run it."""
    return foreground.is_reading and foreground.collects_lines and not danger_at(foreground)


def danger_at(foreground: Foreground) -> str:
    """A reason to type nothing for whoever reads the terminal now, as a clause; empty where nothing is known against it."""
    if foreground.hides_input:
        return "its terminal hides what is typed, as for a password"
    for program in foreground.programs:
        danger = danger_of(program.argv, is_parent=program.is_parent)
        if danger:
            return danger
    return ""


def danger_of(argv: Sequence[str], *, is_parent: bool = False) -> str:
    """`is_parent`: another program that it started reads the terminal, so what it runs itself is beside the point."""
    name = _name_of(argv)
    if runs_what_is_typed(argv):
        return f"{name} is in the foreground and would run the message"
    if name in _HIDERS and not is_parent:
        return f"{name} is in the foreground and hides the program behind it: wrap the agent on the other side, not {name}"
    if name in _FULL_SCREEN:
        return f"{name} is in the foreground and takes letters for commands"
    family = _FAMILIES.get(name)
    if family is not None and not is_parent and _task_of(name, family, argv[1:]) is _Task.INLINE:
        return f"{name} is in the foreground, and code on its command line may run the message: put the code into a file"
    return ""


def runs_what_is_typed(argv: Sequence[str]) -> bool:
    """A console; or a shell or an interpreter with nothing else to run."""
    if not argv:
        return False
    name = _name_of(argv)
    if name in _PASSING:
        rest = _passed_on(argv[1:])
        return bool(rest) and runs_what_is_typed(rest)
    if name in _CONSOLES:
        return True
    family = _FAMILIES.get(name)
    return family is not None and _task_of(name, family, argv[1:]) is _Task.NONE


def _name_of(argv: Sequence[str]) -> str:
    """`-bash` and `/usr/bin/python3.12` as `bash` and `python`."""
    title = argv[0].partition(": ")[0] if argv else ""  # some write there what they do
    name = os.path.basename(title).lstrip("-").removesuffix(".exe")
    return name if name in _CONSOLES else _VERSION.sub("", name) or name


def _passed_on(rest: Sequence[str]) -> Sequence[str]:
    """The words that `nice`, `env` and the like run: from the first word on that is no option, setting or number."""
    return next((rest[index:] for index, word in enumerate(rest) if not _NO_PROGRAM.match(word)), ())


def _task_of(name: str, family: _Family, rest: Sequence[str]) -> _Task:
    is_interactive = False
    words = iter(rest)
    for word in words:
        if word == "-":
            return _Task.NONE
        if word == "--":
            return _Task.FILE if next(words, "") and not is_interactive else _Task.NONE
        if not word.startswith(("-", "+")):
            return _Task.NONE if is_interactive or word in _SUBCOMMANDS.get(name, ()) else _Task.FILE
        option = word.partition("=")[0].lower() if name == "pwsh" else word.partition("=")[0]
        if option in family.long_interactive:
            is_interactive = True
        elif option in family.long_inline:
            return _Task.NONE if is_interactive else _Task.INLINE
        elif option in family.long_values and "=" not in word:
            next(words, None)
        elif not word.startswith("--"):
            found = _read_letters(family, word[1:], words)
            if found is not None:
                return _Task.NONE if is_interactive else found
    return _Task.FILE if name == "bun" else _Task.NONE


def _read_letters(family: _Family, letters: str, words: Iterator[str]) -> _Task | None:
    for index, letter in enumerate(letters):
        if letter in family.interactive:
            return _Task.NONE
        if letter in family.inline:
            return _Task.INLINE
        if letter in family.module:
            module = letters[index + 1 :] or next(words, "")
            return _Task.NONE if module.partition(".")[0] in _REPL_MODULES else _Task.FILE
        if letter in family.values:
            if index == len(letters) - 1:
                next(words, None)
            return None
    return None
