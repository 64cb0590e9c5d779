"""Messages in one SQLite file, and ARC's registrations in another: `store.SqliteStore` and `arc.SqliteArc`."""
