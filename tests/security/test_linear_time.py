"""No text makes the relay think for long: the time of every expression grows with the text, not with its square."""

from __future__ import annotations

import time

import pytest

from tests.security.expressions import Expression, all_expressions, hostile_texts

SIZE = 3_000
TIMES_LONGER = 4
QUICK_S = 0.01  # nothing to see below: a quadratic expression takes a hundred times as long for the longer text
MOST_GROWTH = 9.0  # 4 is linear, 16 quadratic
EXPRESSIONS = all_expressions()


def _time(expression: Expression, text: str) -> float:
    start = time.thread_time()
    expression.run(text)
    return time.thread_time() - start


def _growth(expression: Expression) -> tuple[float, str]:
    """How many times longer the longer text takes, and which text that is: the first that is too much, else the last."""
    found = (0.0, "")
    shorter = list(hostile_texts(expression.pattern, expression.flags, SIZE))
    longer = hostile_texts(expression.pattern, expression.flags, SIZE * TIMES_LONGER)
    for short, long in zip(shorter, longer, strict=True):
        took = _time(expression, long)
        if took < QUICK_S:
            continue
        took = min(took, _time(expression, long))
        before = min(_time(expression, short) for _ in range(3))
        found = (took / max(before, 1e-6), short[:60])
        if found[0] >= MOST_GROWTH:
            break
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=[each.where for each in EXPRESSIONS])
def test_the_time_of_an_expression_grows_with_the_text(expression: Expression) -> None:
    growth, text = _growth(expression)
    assert growth < MOST_GROWTH, f"{expression.where}: {expression.pattern!r} on {text!r}…"


def test_expressions_are_found_everywhere() -> None:
    places = " ".join(each.where for each in EXPRESSIONS)
    for known in ("generic.patterns.tokens", "claude.dialogs", "parser.lead_of", "core.risk", "screen.dialogs:"):
        assert known in places, known


@pytest.mark.parametrize("pattern", [r"(\d[\d,]*)\s*input", r"\s*(\S.*\?)\s*$", r"(?:x|y)*?z"])
def test_a_quadratic_expression_is_found_out(pattern: str) -> None:
    assert _growth(Expression("planted", pattern, 0))[0] >= MOST_GROWTH
