"""Control sequences that the emulator would draw as text, taken out or respelled before it sees them.

Sequences come cut anywhere, so what may be the beginning of one is kept until the rest arrives. Only what pyte 0.8.2
gets wrong is touched: strings (DCS, APC, PM, SOS), private markers `<` `=` `>`, intermediate bytes, and parameters
separated by colons.
"""

from __future__ import annotations

import re

_STRING = r"\x1b[P_X^][^\x1b\x07\x9c]*(?:\x1b\\|\x07|\x9c)"
_MARKED = r"\x1b\[[<=>][0-9;:]*[ -/]*[@-~]"
_INTERMEDIATE = r"\x1b\[[0-9;?]*[!\"#%&'()*+,./-][ -/]*[@-~]"
_COLONS = r"\x1b\[[0-9;]*:[0-9;:]*m"
_ODD = re.compile("|".join((_STRING, _MARKED, _INTERMEDIATE, _COLONS)))
_BEGUN = re.compile(r"\x1b(?:[P_X^][^\x1b\x07\x9c]*\x1b?|\[[0-9;:<=>?]*[ -/]*)?$")
_MAX_STRING = 65_536  # longer than any real one; beyond it the string is let through rather than kept for ever


class ControlFilter:
    def __init__(self) -> None:
        self._kept = ""

    def clean(self, text: str) -> str:
        if self._kept:
            text, self._kept = self._kept + text, ""
        escape = text.rfind("\x1b")
        if escape < 0:
            return text
        begun = _BEGUN.search(text, max(text.rfind("\x1b", 0, escape), 0))
        if begun and len(text) - begun.start() <= _MAX_STRING:
            text, self._kept = text[: begun.start()], text[begun.start() :]
        return _ODD.sub(_respell, text)


def _respell(match: re.Match[str]) -> str:
    sequence = match[0]
    if not (sequence.endswith("m") and ":" in sequence):
        return ""
    parameters = []
    for parameter in sequence[2:-1].split(";"):
        parts = parameter.split(":")
        if parts[0] in {"38", "48"}:
            # 38:2::r:g:b has an empty colour space where 38;2;r;g;b has nothing.
            if len(parts) == 6 and parts[1] == "2":
                del parts[2]
            parameters.append(";".join(parts))
        else:
            parameters.append("24" if parts == ["4", "0"] else parts[0])
    return f"\x1b[{';'.join(parameters)}m"
