"""Whether a team's rules let somebody do something: default open, deny wins, order irrelevant."""

from __future__ import annotations

from collections.abc import Sequence

from agent_relay.protocol.access_rules import AccessRule, list_patterns, matches


class Access:
    def __init__(self, rules: Sequence[AccessRule]) -> None:
        self.rules = tuple(rules)

    def find_refusal(self, action: str, subject: str, target: str) -> AccessRule | None:
        """The rule that stands against it; None: nothing does."""
        closing: AccessRule | None = None  # an `allow` for others
        is_allowed = False
        for rule in self.rules:
            if rule.action != action or not any(matches(pattern, target) for pattern in list_patterns(rule.to)):
                continue
            is_meant = any(matches(pattern, subject) for pattern in list_patterns(rule.from_))
            if rule.effect == "deny":
                if is_meant:
                    return rule
            elif is_meant:
                is_allowed = True
            else:
                closing = closing or rule
        return None if is_allowed else closing
