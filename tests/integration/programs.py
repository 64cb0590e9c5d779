"""Programs as they are found in terminals, for the table of what is typed to which (docs/terminals.md).

python programs.py line PROMPT FILE      asks for a line with that prompt, again and again; FILE has what it was given
python programs.py secret PROMPT FILE    the same without an echo, as for a password
python programs.py keys PROMPT FILE      reads keys, as readline and full-screen programs do; with a box around the prompt
python programs.py screen PROMPT FILE    the same on the alternate screen, as an editor or a pager
"""

from __future__ import annotations

import os
import sys
import termios
import tty


def ask_for_lines(prompt: str, path: str) -> None:
    while True:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            return
        with open(path, "a", encoding="utf-8") as file:
            file.write(line)


def hide_input() -> None:
    modes = termios.tcgetattr(0)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, modes)


def read_keys(prompt: str, path: str) -> None:
    tty.setraw(0)
    draft = ""
    sys.stdout.write("╭" + "─" * 78 + "╮\r\n\r\n╰" + "─" * 78 + "╯\r\n  ? for help\x1b[2A")
    while True:
        sys.stdout.write(f"\r\x1b[2K│ {prompt}{draft[-70:]}\x1b[80G│\x1b[{len(prompt) + len(draft[-70:]) + 3}G")
        sys.stdout.flush()
        for letter in os.read(0, 4096).decode("utf-8", "replace"):
            if letter == "\r":
                with open(path, "a", encoding="utf-8") as file:
                    file.write(draft + "\n")
                draft = ""
            else:
                draft += letter


if __name__ == "__main__":
    kind, prompt, path = sys.argv[1:]
    if kind == "secret":
        hide_input()
    if kind == "screen":
        sys.stdout.write("\x1b[?1049h\x1b[H")
    (read_keys if kind in {"keys", "screen"} else ask_for_lines)(prompt, path)
