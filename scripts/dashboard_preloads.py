"""The modules that the dashboard's page asks for at once, rather than one after the other as each is found in the last.

    python scripts/dashboard_preloads.py    # writes the list in index.html anew; a test says when that is due

They are what the page and its first view import, directly or through others.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

STATIC = Path(__file__).resolve().parent.parent / "src/agent_relay/dashboard/static"
ENTRIES = ("app.js", "views/conversations.js")
_IMPORT = re.compile(r"""(?:^|[;}\s])(?:import|export)\s*(?:[\w*{}\s,$]*?from\s*)?["'](\.[^"']+)["']""")
_LINKS = re.compile(r'(?: *<link rel="modulepreload" href="[^"]*">\n)+')


def find_modules(static: Path, entries: tuple[str, ...] = ENTRIES) -> list[str]:
    """Those that the entries lead to, sorted, with the entries but without the first, which the page names itself."""
    found: set[str] = set()
    waiting = list(entries)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            text = (static / path).read_text()
            waiting += [posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) for name in _IMPORT.findall(text)]
    return sorted(found - {entries[0]})


def write_list(page: str, modules: list[str]) -> str:
    links = "".join(f'    <link rel="modulepreload" href="static/{path}">\n' for path in modules)
    written, count = _LINKS.subn(lambda _: links, page)
    if count != 1:
        raise SystemExit("index.html must have one list of modules.")
    return written


def main() -> None:
    page = STATIC / "index.html"
    page.write_text(write_list(page.read_text(), find_modules(STATIC)))


if __name__ == "__main__":
    main()
