-- Small pieces of the daemon's own state, each under its name. The store does not look into them.

CREATE TABLE documents (
    name    TEXT PRIMARY KEY,
    content BLOB NOT NULL
);
