"""What Claude Code's hooks tell of its tools, as observations. The session file tells the same later; each is reported once."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_relay.terminal.output.observations import MAX_OUTPUT_CHARACTERS, ToolEnded, ToolStarted, show_input
from agent_relay.terminal.output.transcripts.records import as_dict, as_text

TOOL_STARTED, TOOL_ENDED = "ToolStarted", "ToolEnded"


def observe_tool(event: str, given: dict[str, Any]) -> ToolStarted | ToolEnded | None:
    """None for a tool of a helper's, which is none of the agent's own, and for what cannot be told apart."""
    id_, name = as_text(given.get("tool_use_id")), as_text(given.get("tool_name"))
    if not id_ or given.get("agent_id"):
        return None
    if event == TOOL_STARTED:
        return ToolStarted(id_, name, show_input(as_dict(given.get("tool_input"))))
    response = given.get("tool_response")
    was_stopped = bool(as_dict(response).get("interrupted"))
    return ToolEnded(id_, name, was_stopped, _output_of(response)[:MAX_OUTPUT_CHARACTERS])


def _output_of(response: Any) -> str:
    """As the agent is given it: what a command printed; of other tools their answer as it is."""
    if isinstance(response, str):
        return response
    printed = [as_text(as_dict(response).get(name)) for name in ("stdout", "stderr")]
    if any(printed):
        return "\n".join(text for text in printed if text)
    return "" if "stdout" in as_dict(response) or response is None else msgspec.json.encode(response).decode()
