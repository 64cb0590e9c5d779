"""Agents in terminals: what their CLIs say, which state they are in, and how to reach them.

`screen` makes lines and states of what a terminal shows, `output` finds in them, and in the CLI's session files, what the agent
says; `profiles` hold what differs between CLIs. `backends` run the program, `delivery` puts messages before it, through one of
the `doors` or by typing, and `requests` are what it asks a person. `reports` tell the daemon, `recordings` and `files` keep what
is needed later. `agent` connects them all: `agent.setup` plans a start, `agent.parts` builds everything, `agent.wrapper` runs it.
"""
