from __future__ import annotations

from typing import Any

import pytest

from agent_relay.patterns.tasks import MAX_NAME, Task, read_task
from agent_relay.patterns.templates import fill
from agent_relay.protocol.errors import RelayError


def test_what_is_put_in_is_not_looked_at_again() -> None:
    assert (
        fill("{{task}}: {{item}} {{other}} {item}", task="Read {{item}}", item="a{b}") == "Read {{item}}: a{b} {{other}} {item}"
    )


def test_a_task_may_be_a_mapping() -> None:
    assert read_task({"name": "Ann", "cli": "claude", "task": "Think."}) == Task("Ann", "claude", "Think.")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"name": "Ann", "cli": "claude"}, "exactly the keys `name`, `cli` and `task`"),
        ({"name": "Ann", "cli": "claude", "task": "x", "model": "y"}, "exactly the keys"),
        (Task("two words", "claude", "x"), "cannot be an agent's name"),
        (Task("human", "claude", "x"), "reserved"),
        (Task("x" * (MAX_NAME + 1), "claude", "x"), "at most 48"),
    ],
)
def test_what_is_no_task_is_refused(given: Task | dict[str, Any], reason: str) -> None:
    with pytest.raises(RelayError, match=reason):
        read_task(given)
