"""ARC at the command line: who an `arc` command acts as, the agents and invitations of a relay, talking, and checking one."""
