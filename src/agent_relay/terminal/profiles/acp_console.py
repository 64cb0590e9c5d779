"""The profile of the console in which agents run that speak the Agent Client Protocol (`terminal.acp`).

It is our own program, so it needs no recordings and no file. The agent's words, its state and what it asks come by its door:
nothing on the screen is the agent's, and all that is ever typed there is a person's line.
"""

from __future__ import annotations

from agent_relay.terminal.profiles.profile import Composer, Kind, Profile, Rows, Signs, Submit

ACP_CONSOLE = Profile(
    name="acp-console",
    title="ACP console",
    doors=("acp",),
    rows=Rows(user=(r"^› (?=\S)",), volatile=("^… ",), default=Kind.OTHER),
    composer=Composer(row="^›(?: (?P<draft>.*))?$", must_hold_cursor=True),
    busy=Signs(rows=("^… (?:starting|working|asks for a decision)",)),
    submit=Submit(interrupt_key="\x03", when_busy="queue"),
)
