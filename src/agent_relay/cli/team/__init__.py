"""A team from one file: read, confirmed by the owner, started, and ended."""
