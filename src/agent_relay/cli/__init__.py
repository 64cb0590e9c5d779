"""The command line: `agent-relay`, `relay`, `python -P -m agent_relay`.

`main` is the entry point, `app` puts the commands of `command_list` behind the command-line library, and `commands` has a file
for each. What they share lies in `project` (the daemon and how to talk to it), `wrapper` (agents in terminals), `arc` (relays
elsewhere) and `output` (how things look); `demo` and `doctor` are the parts of those two commands.
"""
