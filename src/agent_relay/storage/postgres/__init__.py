"""Messages in PostgreSQL. Only `daemon` imports it, and only for `--storage postgres`: nobody else needs asyncpg."""
