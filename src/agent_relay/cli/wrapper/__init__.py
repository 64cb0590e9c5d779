"""Agents that the relay wraps: the process that wraps one, its profile, what it is given, and how other commands find it."""
