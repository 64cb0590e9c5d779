"""Every input that fuzzing has found worth keeping goes through its target again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.protocol.decode import decode_client_frame
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).with_name("corpus")


def replay(target: str) -> None:
    for path in sorted((CORPUS / target).iterdir()):
        try:
            TARGETS[target](path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path} breaks {target}") from error


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_that_was_found_breaks_its_target(target: str) -> None:
    replay(target)


def test_an_input_that_breaks_its_target_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def believe(data: bytes) -> None:
        decode_client_frame(data)  # as if nothing were ever refused

    monkeypatch.setitem(TARGETS, "envelope", believe)
    with pytest.raises(AssertionError, match=r"corpus/envelope/.* breaks envelope"):
        replay("envelope")


def test_there_is_a_corpus_for_every_target_and_no_other() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(len(list(path.iterdir())) > 20 for path in CORPUS.iterdir())
