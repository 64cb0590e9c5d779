"""All rules, in the order of the protocol."""

from __future__ import annotations

from agent_relay.arc.conformance.basic_rules import BASIC
from agent_relay.arc.conformance.case import Case
from agent_relay.arc.conformance.extension_rules import EXTENSIONS
from agent_relay.arc.conformance.offered_rules import OFFERED

SECTIONS = [*BASIC, *OFFERED, *EXTENSIONS]
CASES: list[Case] = [case for section in SECTIONS for case in section.cases]
