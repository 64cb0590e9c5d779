"""Where an agent stands in a chain: the newest input wins, and in it the longest way."""

from __future__ import annotations

from agent_relay.core.agents import Agent
from agent_relay.core.chains import Chain, Hop, Stage, Standing


def agent(name: str) -> Agent:
    return Agent(name, uid=1_000, registered_at=0, dedup_ids=10)


def test_what_is_said_is_one_hop_further_than_what_was_heard() -> None:
    chain, a, b = Chain(1), agent("A"), agent("B")
    first, second = Standing(chain, "ses_1"), Standing(chain, "ses_2")
    said = first.speak(a)
    assert (said.depth, said.speakers) == (1, (a,))
    assert first.speak(a).depth == 1  # saying more is no answer
    second.hear(said)
    answer = second.speak(b)
    assert (answer.depth, answer.speakers, chain.highest) == (2, (a, b), 2)


def test_in_one_chain_the_longest_way_counts() -> None:
    chain, a = Chain(1), agent("A")
    standing = Standing(chain, "ses_1")
    standing.hear(Hop(chain, 7, (a,)))
    standing.hear(Hop(chain, 3, ()))
    assert (standing.hops, standing.speakers) == (7, (a,))


def test_a_newer_chain_replaces_an_older_one_and_never_the_other_way_round() -> None:
    older, newer = Chain(1), Chain(2)
    standing = Standing(older, "ses_1")
    standing.hear(Hop(older, 50, ()))
    standing.hear(Hop(newer, 1, ()))
    standing.hear(Hop(older, 51, ()))
    assert (standing.chain, standing.hops) == (newer, 1)


def test_hops_below_the_floor_do_not_count_for_those_who_had_not_come_so_far_either() -> None:
    chain, a = Chain(1), agent("A")
    standing = Standing(chain, "ses_1")
    standing.hear(Hop(chain, 3, ()))
    chain.floor = 60
    assert standing.speak(a).depth == 1


def test_only_the_last_speakers_are_kept() -> None:
    chain, crowd = Chain(1), [agent(f"A{number}") for number in range(30)]
    standing = Standing(chain, "ses_1")
    for member in crowd:
        standing.hear(standing.speak(member))
    assert list(standing.speakers) == crowd[-20:]


def test_a_stage_has_a_word() -> None:
    assert [stage.word for stage in sorted(Stage)] == ["slowed", "held"]
