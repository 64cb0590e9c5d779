"""A docstring begins with the noun or verb it documents, as a reader looks for it, and not with a question word."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").glob("*.py")]

_QUESTION = re.compile(r"(What|Who|Whom|Whose|Where|How|Which)\b")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def question_docstrings(source: str) -> list[str]:
    """The first lines of docstrings that begin with a question word."""
    docstrings = (ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source)) if isinstance(node, _DOCUMENTED))
    return [text.splitlines()[0] for text in docstrings if _QUESTION.match(text)]


def test_no_docstring_of_the_source_begins_with_a_question_word() -> None:
    assert len(SOURCES) > 500
    found = {str(path.relative_to(ROOT)): question_docstrings(path.read_text("utf-8")) for path in SOURCES}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        '"""What this module holds."""',
        'class Door:\n    """Who may come in."""',
        'def count():\n    """How many there are."""',
        'def names():\n    """Whom it is for."""',
        'class Door:\n    async def open(self):\n        """Where it leads.\n\n        More.\n        """',
    ],
)
def test_a_planted_one_is_found(source: str) -> None:
    assert len(question_docstrings(source)) == 1


@pytest.mark.parametrize(
    "source", ['"""Whether it rains."""', '"""However it ends."""', "x = 1", 'def f():\n    """The door."""']
)
def test_other_docstrings_are_fine(source: str) -> None:
    assert question_docstrings(source) == []
