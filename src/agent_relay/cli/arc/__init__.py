"""ARC at the command line: the identities of `arc` commands, talking as them, and checking a relay."""
