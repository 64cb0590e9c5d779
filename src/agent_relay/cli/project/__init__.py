"""The project that a command works in: how it is chosen, its daemon and how to talk to it, its agents and what they ask."""
