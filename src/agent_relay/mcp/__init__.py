"""The relay as tools for agents: a server of the Model Context Protocol on standard input and output."""
