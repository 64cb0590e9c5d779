-- The first schema. What is written for every message is one b-tree in order of arrival; everything that makes
-- reading convenient (words, agents) is filled in later, up to the number in meta.indexed_to.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES
    ('checkpoint', 0),   -- up to here every message is done or in the backlog
    ('indexed_to', 0),   -- up to here message_words and message_agents are filled
    ('counted', 0),      -- how many messages there were …
    ('counted_to', 0),   -- … when this was the newest one
    ('lag_ms', 0);       -- how far at most a message's ts lies before the moment in its number: a clock was set back

-- `tail` stands last: a large body lies on overflow pages, which nothing but reading the message itself touches.
CREATE TABLE messages (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL,
    sender     TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    target     TEXT NOT NULL,
    topic      TEXT NOT NULL,
    kind       TEXT NOT NULL,
    ts         INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    priority   INTEGER NOT NULL,
    queued     INTEGER NOT NULL,
    recipients TEXT NOT NULL,   -- JSON: [["Bob", 12], …]
    thread     TEXT,
    skipped    TEXT,            -- JSON: ["Carol", …], or NULL for none
    tail       BLOB NOT NULL
);

-- Partial, so that a plain message from one agent to another is in none of them.
CREATE INDEX messages_by_topic  ON messages (topic)  WHERE topic > '';
CREATE INDEX messages_by_thread ON messages (thread) WHERE thread IS NOT NULL;
CREATE INDEX messages_by_target ON messages (target) WHERE target > '' AND target < '0';  -- `#channel` and `*`

CREATE VIEW message_bodies (number, body) AS
    SELECT number,
           CASE WHEN json_valid('{' || CAST(tail AS TEXT)) THEN json_extract('{' || CAST(tail AS TEXT), '$.payload.body') END
    FROM messages;

CREATE VIRTUAL TABLE message_words USING fts5 (
    body, content = 'message_bodies', content_rowid = 'number', tokenize = 'unicode61 remove_diacritics 2'
);

CREATE TABLE message_agents (
    agent  TEXT NOT NULL COLLATE NOCASE,   -- the sender and every recipient
    number INTEGER NOT NULL,
    PRIMARY KEY (agent, number)
) WITHOUT ROWID;

CREATE TABLE backlog (
    number INTEGER PRIMARY KEY
);

CREATE TABLE streams (
    topic      TEXT NOT NULL,
    sender     TEXT NOT NULL COLLATE NOCASE,
    recipient  TEXT NOT NULL COLLATE NOCASE,
    last_seq   INTEGER NOT NULL,
    wire_seq   INTEGER NOT NULL,
    heard_seq  INTEGER NOT NULL,
    done_seq   INTEGER NOT NULL,
    done_above TEXT NOT NULL,   -- JSON: [14, 17], or '' for none
    PRIMARY KEY (recipient, sender, topic)
) WITHOUT ROWID;

CREATE TABLE agents (
    name                TEXT PRIMARY KEY COLLATE NOCASE,
    cli                 TEXT,
    uid                 INTEGER NOT NULL,
    session_id          TEXT NOT NULL,
    token_hash          TEXT NOT NULL,
    previous_token_hash TEXT,
    registered_at       INTEGER NOT NULL,
    last_seen_at        INTEGER NOT NULL,
    connected           INTEGER NOT NULL,
    meta                BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE spent_tokens (
    token_hash TEXT PRIMARY KEY,
    agent      TEXT NOT NULL COLLATE NOCASE,
    spent_at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE subscriptions (
    agent   TEXT NOT NULL COLLATE NOCASE,
    pattern TEXT NOT NULL,
    PRIMARY KEY (agent, pattern)
) WITHOUT ROWID;

CREATE TABLE members (
    channel TEXT NOT NULL,
    agent   TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (channel, agent)
) WITHOUT ROWID;

CREATE TABLE trail (
    place     INTEGER PRIMARY KEY,
    topic     TEXT NOT NULL,
    sender    TEXT NOT NULL COLLATE NOCASE,
    recipient TEXT NOT NULL COLLATE NOCASE,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    event     TEXT NOT NULL,
    detail    TEXT NOT NULL
);

CREATE INDEX trail_by_stream ON trail (recipient, sender, topic, first_seq, last_seq);

CREATE TABLE dead_letters (
    number    INTEGER NOT NULL,
    recipient TEXT NOT NULL COLLATE NOCASE,
    at        INTEGER NOT NULL,
    code      TEXT NOT NULL,
    PRIMARY KEY (number, recipient)
) WITHOUT ROWID;

CREATE INDEX dead_letters_by_age ON dead_letters (at);
