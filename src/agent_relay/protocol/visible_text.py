"""Text that lies, made to tell the truth: what is not seen, or looks like something else, becomes a token such as ⟨U+202E⟩.

For wherever a person decides (a permission, a question) and for the headers that agents read. Never for bodies: right-to-left
languages and emoji need some of these characters there. The page has the same in `lib/visible-text.js`, and one table of
examples (tests/data/visible_text.json) is checked against both.

Two kinds of characters are shown as tokens. Unseen ones always: controls, bidirectional marks, zero-width characters, tags,
variation selectors, fillers, and spaces other than the plain one. Look-alikes where they pass for a Latin letter: wide and
mathematical letters, and Cyrillic, Greek, Armenian, Coptic or Cherokee letters in a word that also has Latin ones, or all of
which look Latin in a text that is otherwise Latin. Text in those languages stays as it is.
"""

from __future__ import annotations

import re

# Everything of Cc but tab and line feed, and of Cf, Cs, Co, Zl, Zp, Zs but the space; variation selectors; letters that are
# drawn as nothing (fillers of Hangul, the blank of Braille, vowels of Khmer); U+FFF9 to FFFB.
_UNSEEN = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\xa0\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u115f\\u1160\\u1680"
    "\\u17b4\\u17b5\\u180b-\\u180f\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u2800\\u3000\\u3164\\ud800-\\uf8ff\\ufe00-\\ufe0f"
    "\\ufeff\\uffa0\\ufff0-\\ufffb\\U000110bd\\U000110cd\\U00013430-\\U0001343f\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a"
    "\\U000e0000-\\U000e0fff\\U000f0000-\\U0010ffff"
)
# Letters, digits and signs that are another way to write a plain one: wide, mathematical, Roman numerals; slashes and a dot.
_DISGUISED = (
    "\\u0131\\u0251\\u0261\\u0269\\u01c0\\u01c3\\u2024\\u2044\\u2160-\\u217f\\u2215\\u2236\\u29f8\\ua789\\uff01-\\uff5e"
    "\\U0001d400-\\U0001d7ff"
)
_LATIN = "A-Za-z\\u00c0-\\u024f\\u1e00-\\u1eff"
# Greek, Coptic, Cyrillic, Armenian, Cherokee: scripts with letters that look Latin.
_FOREIGN = (
    "\\u0370-\\u0373\\u0376\\u0377\\u037b-\\u037d\\u037f\\u0386\\u0388-\\u03ff\\u0400-\\u052f\\u0531-\\u0587\\u13a0-\\u13ff"
    "\\u1c80-\\u1c8f\\u1f00-\\u1fff\\u2c80-\\u2cff\\ua640-\\ua69f\\uab70-\\uabbf"
)
# Those that do, of Cyrillic and Greek: a word of them alone passes for a Latin one.
LOOK_ALIKES = "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝѵ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανικορτυχϲϳ"

_ODD = re.compile(f"[{_UNSEEN}{_DISGUISED}]")
_ANY_FOREIGN = re.compile(f"[{_FOREIGN}]")
_ANY_LATIN = re.compile(f"[{_LATIN}]")
_WORD = re.compile(f"[{_LATIN}{_FOREIGN}0-9_]+")
_PASSES_FOR_LATIN = frozenset(LOOK_ALIKES)

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_BREAKS = re.compile("\r\n|[\r\u0085\u2028\u2029\x0b\x0c]")


def reveal(text: str) -> str:
    """The text with a token for each character that lies; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    foreign = set(_ANY_FOREIGN.findall(text))
    if foreign:
        is_posing = foreign <= _PASSES_FOR_LATIN and _ANY_LATIN.search(text) is not None
        text = _WORD.sub(lambda word: _reveal_word(word[0], is_posing=is_posing), text)
    return _ODD.sub(lambda found: _token(found[0]), text)


def clean(text: str) -> str:
    """The text without anything that steers a terminal; what was replaced is seen to have been there. Bodies are cleaned, too."""
    return _CONTROLS.sub("\ufffd", _LINE_BREAKS.sub("\n", text))


def _reveal_word(word: str, *, is_posing: bool) -> str:
    if not is_posing and _ANY_LATIN.search(word) is None:
        return word
    return _ANY_FOREIGN.sub(lambda found: _token(found[0]), word)


def _token(character: str) -> str:
    return f"⟨U+{ord(character):04X}⟩"
