"""The cost of a regular expression on one row, at worst: so that one from a file cannot hold up a wrapper.

An estimate from the expression alone, on the safe side: a repeat that can give characters back multiplies the work of
what follows it, unless what follows cannot begin with such a character. A repeat of something that varies in length is
refused, unless each turn begins or ends with a character that the rest of it cannot hold.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

ROW = 1_000  # characters; rows of real terminals have fewer
MOST_STEPS = 10_000_000  # on one row: a few hundredths of a second
MAX_PATTERN = 1_000  # characters of an expression
_MOST_NODES = 20_000  # looked at for one expression
_UNROLLED = 4  # repeats of a group up to this often count as written out
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT)
_SINGLE = (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN)
_COMMON = "".join(map(chr, range(0x250))) + "—…█⠋❯●›漢"
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d", "CATEGORY_NOT_DIGIT": r"\D", "CATEGORY_SPACE": r"\s", "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w", "CATEGORY_NOT_WORD": r"\W",
}  # fmt: skip
_Items = Sequence[tuple[Any, Any]]


class Costly(Exception):  # noqa: N818 - named by the condition
    """The expression may take too long; the text says why, and what to write instead."""


def check_cost(pattern: str) -> None:
    """Raises Costly. The expression is one that compiles."""
    if len(pattern) > MAX_PATTERN:
        raise Costly(f"an expression has at most {MAX_PATTERN} characters")
    tree = list(parser.parse(pattern))
    steps = _Reader(pattern).steps(tree, can_fail=False)
    if not _is_anchored(tree):
        steps *= ROW
    if steps > MOST_STEPS:
        raise Costly("it may be too slow on a long row: start it with ^, or limit repetitions (.{0,80} instead of .*)")


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._letters = frozenset(_COMMON) | frozenset(pattern)
        self._nodes = 0

    def steps(self, items: _Items, *, can_fail: bool) -> int:
        """`can_fail`: something follows these items that may not match, so that they are tried in other ways."""
        if not items:
            return 1
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise Costly("it is too complicated: write several shorter expressions")
        (operation, value), rest = items[0], items[1:]
        if operation is sre.SUBPATTERN:
            return self.steps([*value[-1], *rest], can_fail=can_fail)
        if operation is sre.BRANCH:
            return sum(self.steps([*branch, *rest], can_fail=can_fail) for branch in value[1])
        if operation in _REPEATS:
            return self._repeat(value, rest, can_fail=can_fail)
        if operation in {sre.GROUPREF, sre.GROUPREF_EXISTS}:
            raise Costly("backreferences are not allowed")
        after = self.steps(rest, can_fail=can_fail)
        if operation in {sre.ASSERT, sre.ASSERT_NOT}:
            return after + self.steps(list(value[1]), can_fail=True)
        if operation is sre.ATOMIC_GROUP:
            return after + self.steps(list(value), can_fail=True)
        if operation is sre.POSSESSIVE_REPEAT:
            return after + self._repeat(value, (), can_fail=False)
        return after

    def _repeat(self, value: Any, rest: _Items, *, can_fail: bool) -> int:
        least, most, body = int(value[0]), min(int(value[1]), ROW), _flatten(list(value[2]))
        gives_back = can_fail or any(self._is_needed(item) for item in rest)
        if len(body) == 1 and body[0][0] in _SINGLE:
            turns = most - least + 1
        elif most <= _UNROLLED:
            return sum(self.steps([*list(body) * count, *rest], can_fail=can_fail) for count in {least, most})
        else:
            self._check_body(body)
            turns = max(most - least + 1, self.steps(body, can_fail=True))
        after = self.steps(rest, can_fail=can_fail)
        if not gives_back:
            return after  # it is reached once, and gives nothing back
        return turns + after if self._is_apart(body, rest) else turns * after

    def _check_body(self, body: _Items) -> None:
        """One row is read in one way only: as turns that begin with different characters, or that a character ends."""
        if not any(self._is_needed(item) for item in body):
            raise Costly("a repeated group can match the empty text: make it match at least one character")
        if self._is_fixed(body):
            return
        if len(body) == 1 and body[0][0] is sre.BRANCH:
            branches = [list(branch) for branch in body[0][1][1]]
            heads = [self._first(branch) for branch in branches]
            is_told = all(not (one & other) for at, one in enumerate(heads) for other in heads[:at])
            if is_told and all(branch and self._is_fixed(branch) for branch in branches):
                return
        for at, item in enumerate(body):
            if not self._is_told(item, body[(at + 1) % len(body)]):
                raise Costly("it repeats something of varying length, so one row can match in too many ways")

    def _is_told(self, item: tuple[Any, Any], follower: tuple[Any, Any]) -> bool:
        """It has a fixed length, or repeats a character that what follows it cannot be."""
        operation, value = item
        if operation is sre.SUBPATTERN and len(value[-1]) == 1:
            return self._is_told(value[-1][0], follower)
        if operation in _REPEATS and value[0] != value[1]:
            inner = list(value[2])
            is_run = len(inner) == 1 and inner[0][0] in _SINGLE and follower[0] in _SINGLE
            return is_run and not (self._matched(inner) & self._matched([follower]))
        return self._is_fixed([item])

    def _is_apart(self, body: _Items, rest: _Items) -> bool:
        """Whether what follows cannot begin with what is repeated."""
        return bool(rest) and (rest[0] in _ENDS or not (self._matched(body) & self._first(rest)))

    def _is_needed(self, item: tuple[Any, Any]) -> bool:
        operation, value = item
        if operation in {*_REPEATS, sre.POSSESSIVE_REPEAT}:
            return int(value[0]) > 0 and any(self._is_needed(inner) for inner in value[2])
        if operation is sre.SUBPATTERN:
            return any(self._is_needed(inner) for inner in value[-1])
        if operation is sre.BRANCH:
            return all(any(self._is_needed(inner) for inner in branch) for branch in value[1])
        return True

    def _is_fixed(self, items: _Items) -> bool:
        return all(
            operation in _SINGLE
            or (operation in _REPEATS and value[0] == value[1] and self._is_fixed(list(value[2])))
            or (operation is sre.SUBPATTERN and self._is_fixed(list(value[-1])))
            for operation, value in items
        )  # fmt: skip

    def _first(self, items: _Items) -> frozenset[str]:
        """Every character these may begin with; all, where that is not plain."""
        found: frozenset[str] = frozenset()
        for item in items:
            operation, value = item
            if operation in _SINGLE:
                return found | self._matched([item])
            if operation in _REPEATS:
                found |= self._first(list(value[2]))
            elif operation is sre.SUBPATTERN:
                found |= self._first(list(value[-1]))
            elif operation is sre.BRANCH:
                found = found.union(*(self._first(list(branch)) for branch in value[1] if branch))
            else:
                return self._letters
            if self._is_needed(item):
                return found
        return self._letters

    def _matched(self, items: _Items) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for operation, value in items:
            if operation in _SINGLE:
                found |= frozenset(letter for letter in self._letters if _holds(operation, _key(value), letter))
            elif operation in {*_REPEATS, sre.POSSESSIVE_REPEAT}:
                found |= self._matched(list(value[2]))
            elif operation is sre.SUBPATTERN:
                found |= self._matched(list(value[-1]))
            elif operation is sre.BRANCH:
                found = found.union(*(self._matched(list(branch)) for branch in value[1]))
            elif operation is not sre.AT:
                return self._letters
        return found


_ENDS = ((sre.AT, sre.AT_END), (sre.AT, sre.AT_END_STRING))


def _flatten(items: _Items) -> _Items:
    """Without the brackets around all of it."""
    while len(items) == 1 and items[0][0] is sre.SUBPATTERN:
        items = list(items[0][1][-1])
    return items


def _is_anchored(tree: _Items) -> bool:
    tree = list(tree)
    if not tree:
        return False
    operation, value = tree[0]
    if operation is sre.SUBPATTERN:
        return _is_anchored(list(value[-1]))
    if operation is sre.BRANCH:
        return all(_is_anchored(list(branch)) for branch in value[1])
    return operation is sre.AT and value in {sre.AT_BEGINNING, sre.AT_BEGINNING_STRING}


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=65_536)
def _holds(operation: Any, value: Any, letter: str) -> bool:
    """Compares whatever the case: to take too many for possible is the safe side."""
    return any(_is(operation, value, each) for each in {letter, letter.lower(), letter.upper()})


def _is(operation: Any, value: Any, letter: str) -> bool:
    if operation is sre.ANY:
        return letter != "\n"
    if operation is sre.LITERAL:
        return letter == chr(value)
    if operation is sre.NOT_LITERAL:
        return letter != chr(value)
    is_negated = bool(value) and value[0][0] is sre.NEGATE
    return is_negated is not any(_is_member(member, letter) for member in value[int(is_negated) :])


def _is_member(member: tuple[Any, Any], letter: str) -> bool:
    operation, value = member
    if operation is sre.RANGE:
        return len(letter) == 1 and value[0] <= ord(letter) <= value[1]
    if operation is sre.CATEGORY:
        return re.match(_CATEGORIES[str(value)], letter) is not None
    return letter == chr(value)
