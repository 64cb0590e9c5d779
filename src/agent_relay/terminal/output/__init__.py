"""The output of an agent: the commands and observations in it, read from its screen, its session file or its outbox."""
