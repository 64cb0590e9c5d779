"""A team's rules as law: open by default, deny wins, the order never matters."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.core.teams.access import Access
from agent_relay.protocol.access_rules import AccessRule, list_patterns, matches

NAMES = st.sampled_from(["Ann", "Bob", "Worker1", "Worker2", "Lead"])
NAME_PATTERNS = st.sampled_from(["*", "Ann", "bob", "Worker*", "W*2", "*e*"])
TARGETS = st.sampled_from(["Ann", "Bob", "Worker1", "#dev", "#ops", "topic:code.x", "topic:a"])
TARGET_PATTERNS = st.sampled_from(["*", "Bob", "Worker*", "#dev", "#*", "topic:code.*", "topic:>"])


def _many(one: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(one, min_size=1, max_size=3).map(tuple)


RULES = st.lists(
    st.builds(AccessRule, st.sampled_from(["allow", "deny"]), st.just("send"), _many(NAME_PATTERNS), _many(TARGET_PATTERNS)),
    max_size=6,
)


def _names(rule: AccessRule, subject: str, target: str) -> tuple[bool, bool]:
    """Whether it is about the one, and about the other."""
    return any(matches(p, subject) for p in list_patterns(rule.from_)), any(matches(p, target) for p in list_patterns(rule.to))


@given(RULES, NAMES, TARGETS)
def test_the_law(rules: list[AccessRule], subject: str, target: str) -> None:
    """Written down a second time, as one would say it."""
    found = Access(rules).find_refusal("send", subject, target)
    denied = any(rule.effect == "deny" and all(_names(rule, subject, target)) for rule in rules)
    closing = [rule for rule in rules if rule.effect == "allow" and _names(rule, subject, target)[1]]
    is_let_in = not closing or any(_names(rule, subject, target)[0] for rule in closing)
    assert (found is None) is (not denied and is_let_in)
    if denied:
        assert found is not None
        assert found.effect == "deny"
        assert all(_names(found, subject, target))


@given(RULES, NAMES, TARGETS, st.randoms())
def test_the_order_never_matters(rules: list[AccessRule], subject: str, target: str, random: Random) -> None:
    shuffled = list(rules)
    random.shuffle(shuffled)
    first, second = Access(rules).find_refusal("send", subject, target), Access(shuffled).find_refusal("send", subject, target)
    assert (first is None) is (second is None)


@given(RULES, NAMES, TARGETS)
def test_a_deny_more_never_opens_anything(rules: list[AccessRule], subject: str, target: str) -> None:
    more = [*rules, AccessRule("deny", "send", "Worker*", "#ops")]
    if Access(rules).find_refusal("send", subject, target) is not None:
        assert Access(more).find_refusal("send", subject, target) is not None


@given(RULES, NAMES, TARGETS)
def test_rules_of_one_action_say_nothing_about_another(rules: list[AccessRule], subject: str, target: str) -> None:
    assert Access(rules).find_refusal("spawn", subject, target) is None


def test_without_rules_everything_is_open() -> None:
    assert Access([]).find_refusal("send", "Ann", "Bob") is None
