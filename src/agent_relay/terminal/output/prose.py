"""Prose, told from what is only shown: code, quotations, diffs, conflict markers are not the author's own words.

A line at a time, remembering what it is inside of. Markdown is followed as far as it matters here: a fence is three or
more backticks or tildes and ends with at least as many of the same; four columns of indent are code unless a list is
open; a line that begins with `>` is a quotation; a hunk of a diff lasts until an empty line or one that no diff has.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(?:(?:[-*+•]|\d{1,9}[.)]) +)?(`{3,}|~{3,})(.*)$")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•◦‣]|\d{1,9}[.)])\s")
_DIFF_START = re.compile(r"diff --git |Index: |@@ -\d|--- \S|\+\+\+ \S")
_DIFF_LINE = re.compile(r"[-+ @\\]|diff |index |new file|deleted file|similarity|rename |Binary ")
_CONFLICT_START = re.compile(r"<{5,9} ")
_CONFLICT_END = re.compile(r">{5,9} ")
_QUOTATION = re.compile(r"\s{0,3}>")
CODE_INDENT = 4


class Fence:
    """Inside of a code fence or not."""

    def __init__(self) -> None:
        self._mark = ""

    @property
    def is_open(self) -> bool:
        return bool(self._mark)

    def takes(self, line: str) -> bool:
        """True for the lines of a fenced block, its marks included."""
        match = _FENCE.match(line)
        if self._mark:
            if match and match[1].startswith(self._mark) and not match[2].strip():
                self._mark = ""
            return True
        if match and not (match[1][0] == "`" and "`" in match[2]):
            self._mark = match[1]
            return True
        return False


class Prose:
    """Tells, line by line, whether a line is the author's own."""

    def __init__(self) -> None:
        self._fence = Fence()
        self._in_conflict = False
        self._in_diff = False
        self._in_list = False

    def owns(self, line: str) -> bool:
        if self._fence.takes(line):
            return False
        if self._in_conflict:
            self._in_conflict = _CONFLICT_END.match(line) is None
            return False
        if _CONFLICT_START.match(line):
            self._in_conflict = True
            return False
        if self._takes_diff(line):
            return False
        return not self._is_indented_code(line) and _QUOTATION.match(line) is None

    def _takes_diff(self, line: str) -> bool:
        if _DIFF_START.match(line):
            self._in_diff = True
        elif self._in_diff and (not line.strip() or _DIFF_LINE.match(line) is None):
            self._in_diff = False
        return self._in_diff

    def _is_indented_code(self, line: str) -> bool:
        if not line.strip():
            return False
        expanded = line.expandtabs(4)
        indent = len(expanded) - len(expanded.lstrip())
        if _LIST_ITEM.match(line):
            is_code = indent >= CODE_INDENT and not self._in_list
            self._in_list = not is_code
            return is_code
        if indent < 2:
            self._in_list = False
        return indent >= CODE_INDENT and not self._in_list
