"""Who is known and who listens to what; names and channels in any case."""

from __future__ import annotations

import pytest

from agent_relay.core import registry as registry_module
from agent_relay.core.agents import Agent
from agent_relay.core.registry import Registry


def registry_with(*names: str) -> tuple[Registry, list[Agent]]:
    registry, agents = Registry(), [Agent(name, 0, 0, 10) for name in names]
    for agent in agents:
        registry.add(agent)
    return registry, agents


def test_names_are_found_in_any_case() -> None:
    registry, (bob,) = registry_with("Bob")
    assert [registry.find(name) for name in ("Bob", "bob", "BOB", "bo")] == [bob, bob, bob, None]
    assert list(registry.names()) == ["Bob"]


def test_listeners_follow_every_change() -> None:
    registry, (ann, bob) = registry_with("Ann", "Bob")
    assert registry.listeners("code.review") == ()
    registry.subscribe(ann, "code.*")
    registry.subscribe(bob, "code.review")
    registry.subscribe(ann, "code.>")
    assert set(registry.listeners("code.review")) == {ann, bob}
    assert len(registry.listeners("code.review")) == 2
    registry.unsubscribe(ann, "code.*")
    assert set(registry.listeners("code.review")) == {ann, bob}
    registry.unsubscribe(ann, "code.>")
    registry.unsubscribe(ann, "never.there")
    assert registry.listeners("code.review") == (bob,)


def test_the_cache_of_topics_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_CACHED_TOPICS", 8)
    registry, (ann,) = registry_with("Ann")
    registry.subscribe(ann, ">")
    for number in range(100):
        assert registry.listeners(f"t{number}") == (ann,)
        assert len(registry._by_topic) <= 8


def test_a_channel_lives_while_it_has_members_or_history() -> None:
    registry, (ann, bob) = registry_with("Ann", "Bob")
    registry.join(ann, "#Dev")
    registry.join(bob, "#dEV")
    channel = registry.channel("#dev")
    assert channel is not None
    assert (channel.name, set(channel.members), bob.channels) == ("#Dev", {"ann", "bob"}, {"#Dev"})
    registry.leave(ann, "#dev")
    registry.leave(bob, "#DEV")
    assert registry.channel("#dev") is None
    registry.join(ann, "#dev")
    registry.open_channel("#dev").has_history = True
    registry.leave(ann, "#dev")
    assert registry.channel("#dev") is not None


def test_whoever_is_removed_leaves_nothing_behind() -> None:
    registry, (ann, bob) = registry_with("Ann", "Bob")
    registry.subscribe(ann, "news")
    registry.join(ann, "#dev")
    registry.connected[ann.key] = ann
    bob.stream_from(ann, "")
    ann.stream_from(bob, "")
    registry.remove(ann)
    assert registry.find("ann") is None
    assert registry.listeners("news") == ()
    assert registry.channel("#dev") is None
    assert not bob.streams
    assert not registry.connected
