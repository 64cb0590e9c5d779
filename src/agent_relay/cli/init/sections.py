"""A section of ours at the end of a file, between two marks: in Markdown, and wherever a line can be a comment."""

from __future__ import annotations

from dataclasses import dataclass

from agent_relay.cli.init.editing import CannotEdit, line_of, newline_of, undo


@dataclass(frozen=True, slots=True)
class Section:
    begin: str
    end: str
    body: str  # lines, without the last line end

    def is_in(self, text: str) -> bool:
        return self._find(text) is not None

    def add(self, text: str) -> str:
        """Raises CannotEdit where only one of the marks is there."""
        if self.is_in(text):
            return text
        newline = newline_of(text)
        lines = newline.join([self.begin, *self.body.split("\n"), self.end])
        return text + (newline if text else "") + lines + newline

    def remove(self, text: str) -> str:
        found = self._find(text)
        if found is None:
            return text
        start, end = found
        newlines = [newline_of(text), "\n", "\r\n"]
        whole = [text[:start].removesuffix(each) + text[end:].removeprefix(each) for each in newlines]
        return undo(text, self.add, [*whole, text[:start] + text[end:].removeprefix(newlines[0])])

    def _find(self, text: str) -> tuple[int, int] | None:
        start = text.find(self.begin)
        end = text.find(self.end, start + 1)
        if start < 0 and self.end not in text:
            return None
        if start < 0 or end < 0:
            at = max(start, text.find(self.end))
            raise CannotEdit(f"line {line_of(text, at)} has one of the marks of agent-relay without the other; remove it first")
        return start, end + len(self.end)


def markdown_section(body: str) -> Section:
    return Section("<!-- agent-relay: begin -->", "<!-- agent-relay: end -->", body)


def comment_section(body: str) -> Section:
    return Section("# agent-relay: begin", "# agent-relay: end", body)
