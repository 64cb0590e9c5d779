"""Errors name the line."""

from __future__ import annotations

import pytest

from agent_relay.terminal.profiles.line_numbers import line_of
from agent_relay.terminal.profiles.profile import ProfileError, parse_profile

SOURCE = '''name = "x"
title = """
a = 1
"""
rows.agent = [
  'one',  # [ not
  '(two',
]
[composer]
row = "^> "   # x
[[dialogs]]
kind = "a"
[[dialogs]]
marks = ['b']
kind = 'menu'
'''


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("name", "", 1), ("title", "", 2), ("rows.agent", "", 5), ("rows.agent", "(two", 7), ("composer.row", "", 10),
        ("dialogs[0].kind", "", 12), ("dialogs[1].kind", "", 15), ("dialogs[1].missing", "", 13), ("nothing", "", 1),
    ],
)  # fmt: skip
def test_a_field_is_found(path: str, text: str, line: int) -> None:
    assert line_of(SOURCE, path, text) == line


MINIMAL = 'name = "x"\ntitle = "X"\n[composer]\nrow = "^> "\n'


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (MINIMAL + "[busy]\nrows = [\n  'fine',\n  '(',\n]", "x.toml:8: busy.rows: '(' is not a valid regular expression"),
        (MINIMAL + "[busy]\nrows = ['(a+)+$']", "x.toml:6: busy.rows: '(a+)+$' cannot be used: it repeats something"),
        (MINIMAL + "[busy]\nrow = ['a']", "x.toml:6: busy.row: unknown field; allowed: rows, title"),
        (MINIMAL + "[[dialogs]]\nkind = 'menu'\nmarks = ['x']", "x.toml:6: dialogs[0].kind: must be `permission` or `question`"),
        (MINIMAL + "[rows]\ndefault = 'nobody'", "x.toml:6: rows.default: Invalid enum value 'nobody'; allowed: agent, user"),
        (MINIMAL + "[submit]\npause_ms = 'x'", "x.toml:6: submit.pause_ms: Expected `int`, got `str`"),
        ('name = "x"\ntitle = "X"', "x.toml:1: composer is missing"),
        ('name = "x"\ntitle = X"', "x.toml:2: Invalid value"),
        (MINIMAL + "[busy", "x.toml:5: "),
        ('origin = "y"\n' + MINIMAL, "x.toml:1: origin: unknown field"),
    ],
)
def test_an_error_names_file_line_and_what_is_allowed(source: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile(source, "x.toml", is_own=True)
    assert str(caught.value).startswith(said)
