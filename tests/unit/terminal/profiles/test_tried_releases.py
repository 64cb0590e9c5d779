"""What is known of the releases that were tried, as it is kept and told."""

from __future__ import annotations

import pytest

from agent_relay.terminal.profiles import tried_releases
from agent_relay.terminal.profiles.tried_releases import (
    SCENES,
    YES,
    Tried,
    TriedRelease,
    decode_tried,
    describe_tried,
    encode_tried,
    load_tried,
    newest_first,
    whole_releases,
)

WHOLE = dict.fromkeys(SCENES, YES)
TRIED: Tried = {
    "chatty": {
        "1.10.0": TriedRelease("2026-11-19", "chatty door", 650, WHOLE),
        "1.9.0": TriedRelease("2026-11-18", "typing", scenes={**WHOLE, "busy": "its answer was cut off", "deny": "it ran"}),
        "1.8.0": TriedRelease("2026-11-18", "typing", scenes={"start": YES, "idle": YES}),
        "1.11.0": TriedRelease("2026-11-19", reason="npm could not install it."),
    }
}


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.10.0", "tried on 2026-11-19: all went well"),
        ("1.9.0", "tried on 2026-11-18: busy, deny did not go as it should"),
        ("1.8.0", "tried on 2026-11-18: all went well, but busy, draft, dialog, approve, deny was left out"),
        ("1.11.0", "tried on 2026-11-19: npm could not install it."),
        ("1.12.0", "this release was not tried, the newest that was is 1.10.0"),
    ],
)
def test_a_release_is_described_by_what_was_found(monkeypatch: pytest.MonkeyPatch, version: str, said: str) -> None:
    monkeypatch.setattr(tried_releases, "load_tried", lambda: TRIED)
    assert describe_tried("chatty", version) == said
    assert describe_tried("silent", version) == ""


def test_only_a_release_that_did_all_of_it_counts_as_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tried_releases, "load_tried", lambda: TRIED)
    assert whole_releases("chatty") == {"1.10.0": "chatty door"}


def test_they_are_kept_in_one_order_whatever_the_order_of_the_runs() -> None:
    other_way = {"chatty": dict(reversed(TRIED["chatty"].items()))}
    assert encode_tried(TRIED) == encode_tried(other_way)
    assert decode_tried(encode_tried(TRIED)) == TRIED
    assert newest_first(TRIED["chatty"]) == ["1.11.0", "1.10.0", "1.9.0", "1.8.0"]


def test_what_is_kept_names_scenes_that_there_are_and_a_reason_where_there_are_none() -> None:
    found = [one for releases in load_tried().values() for one in releases.values()]
    assert all(one.scenes or one.reason for one in found)
    assert all(set(one.scenes) <= set(SCENES) for one in found)
