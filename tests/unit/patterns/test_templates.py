from __future__ import annotations

from agent_relay.patterns.templates import Template, fill


def test_what_is_put_in_first_is_not_looked_at_when_the_rest_is_filled() -> None:
    half = Template("{{steps.a.output}} and {{ item }}, {{other}}").put({"steps.a.output": "{{item}}"})
    assert half.slots == ("item", "other")
    assert half == "{{item}} and {{item}}, {{other}}"
    assert fill(half, item="x") == "{{item}} and x, {{other}}"
    assert type(fill(half, item="x")) is str


def test_a_text_without_slots_is_itself() -> None:
    assert fill("{item} {{ two words }}", item="x") == "{item} {{ two words }}"
