"""Reports to the daemon: the agent's state, how far its messages have come, and events."""
