"""The machine: the interpreter, the backends, the terminal, and the places that must be the user's own."""

from __future__ import annotations

import locale
import sys
from collections.abc import Iterator, Mapping

from agent_relay.cli.doctor.backends import check_backends
from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.doctor.places import check_places
from agent_relay.sdk.locate import Place


def check_machine(place: Place, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield Finding("python", Verdict.OK, f"{sys.version.split()[0]} on {sys.platform}")
    yield from check_backends()
    yield _check_terminal(environ)
    yield from check_places(place)


def _check_terminal(environ: Mapping[str, str]) -> Finding:
    term = environ.get("TERM", "")
    encoding = locale.getpreferredencoding(do_setlocale=False)
    if encoding.replace("-", "").lower() != "utf8":
        return Finding(
            "terminal", Verdict.NOTE, f"the locale's encoding is {encoding}", "Set LANG to a UTF-8 locale, e.g. C.UTF-8."
        )
    if term in {"", "dumb"}:
        return Finding(
            "terminal", Verdict.NOTE, f"TERM is {term or 'not set'}", "Most CLIs need a real terminal to be wrapped here."
        )
    return Finding("terminal", Verdict.OK, f"{term}, {encoding}")
