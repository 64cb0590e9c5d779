"""What a program asks for that waits for a line at its terminal: a message, or something that a message must not be.

Only what stands right before the cursor is looked at. Dialogs with answers in brackets are known before (`prompts`, `doubts`).
"""

from __future__ import annotations

import re

SOMETHING_ELSE = "it seems to ask for something other than a message"
_SECRET = re.compile(
    r"(?i:\b(?:pass(?:word|phrase|code)?|otp|pin|token|key|secret|code|credentials?|user ?name|login|e-?mail)\b"
    r"(?:[^:?\])>]{0,60}[:?])?$|^[^:]{0,200}'s password:?$)"
)
_KEY_PRESS = re.compile(r"(?i:\bpress\b|--more--|\(end\)|^:$)")
# `What now?` is answered with a sentence, `Remove the file?` with a yes.
_OPEN_QUESTION = re.compile(r"(?i:^\W{0,4}(?:what|how|who|where|why|when)\b(?!.{0,80}\b(?:delete|remove|overwrite|replace)))")
# `[chat]` names who asks; `[no]` is what is taken for no answer, `name [untitled]` as well.
_LABEL = re.compile(r"^\[([\w][\w .-]{0,30})\]$")
_ANSWERS = frozenset(
    "y n yes no ok enter return default all none any quit q exit a r c cancel abort retry skip more end".split()  # noqa: SIM905
)
_BARE_MARK = re.compile(r"^[$%](?: |$)")
_SHELL = re.compile(r"^[^>❯›]*[$%#](?: |$)")  # at its prompt a text would be run, line by line
_LONGEST = 80  # columns; a prompt is short, and a longer row is a sentence that ends so


def asks_for_something_else(row: str) -> bool:
    """`row`: what stands at the cursor."""
    row = row.strip()
    if _SECRET.search(row) or _KEY_PRESS.search(row):
        return True
    if row.endswith("?"):
        return len(row) > _LONGEST or _OPEN_QUESTION.search(row) is None
    if row.endswith("]"):
        label = _LABEL.match(row)
        return label is None or label[1].strip().lower() in _ANSWERS
    return row.endswith(")")


def looks_like_shell(row: str, *, is_line_read: bool) -> bool:
    """`is_line_read`: the terminal collects lines and a program that is known to be no shell waits for one. Then a bare `$` is a
    prompt like any other; `user@host:~$` and `#` are a shell's in any case."""
    return _SHELL.search(row) is not None and not (is_line_read and _BARE_MARK.match(row) is not None)
