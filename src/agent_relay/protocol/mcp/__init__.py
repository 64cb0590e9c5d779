"""The relay as tools of the Model Context Protocol: what a client is told and what it is answered, as values."""
