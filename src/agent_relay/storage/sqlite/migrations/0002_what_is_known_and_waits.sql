-- What tells, after an error of the disk or a restart, how far the file had come.

INSERT INTO meta (key, value) VALUES
    ('batch', 0),        -- the last transaction of more than messages alone, by its number
    ('seal', 0),         -- counts transactions that only prove that the file can be written again
    ('removed', 0),      -- messages that were pruned or erased; with those there are, all there ever were
    ('first_seq', 0);    -- streams that are new begin after this: up to here numbers may be known of messages that were lost

-- What waits is listed for each recipient, so that it can be read a page at a time when somebody comes for it; and the ids
-- that senders have used are listed in blocks, so that nobody has to read them all at the start.

ALTER TABLE backlog RENAME TO backlog_before;

CREATE TABLE backlog (
    recipient  TEXT NOT NULL COLLATE NOCASE,
    number     INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    size       INTEGER NOT NULL,   -- bytes of the message's tail
    PRIMARY KEY (recipient, number)
) WITHOUT ROWID;

CREATE TEMP TABLE done_above (recipient, sender, topic, seq, PRIMARY KEY (recipient, sender, topic, seq)) WITHOUT ROWID;

INSERT OR IGNORE INTO temp.done_above
    SELECT s.recipient, s.sender, s.topic, each.value FROM streams AS s, json_each(nullif(s.done_above, '')) AS each;

INSERT OR IGNORE INTO backlog
    WITH open AS (
        SELECT m.number, m.sender, m.topic, m.expires_at, length(m.tail) AS size,
               json_extract(each.value, '$[0]') AS recipient, json_extract(each.value, '$[1]') AS seq
        FROM backlog_before AS b JOIN messages AS m ON m.number = b.number, json_each(m.recipients) AS each
    )
    SELECT o.recipient, o.number, o.seq, o.expires_at, o.size
    FROM open AS o LEFT JOIN streams AS s ON s.recipient = o.recipient AND s.sender = o.sender AND s.topic = o.topic
    WHERE (s.done_seq IS NULL OR o.seq > s.done_seq)
      AND NOT EXISTS (
          SELECT 1 FROM temp.done_above AS d
          WHERE d.recipient = s.recipient AND d.sender = s.sender AND d.topic = s.topic AND d.seq = o.seq
      )
      AND EXISTS (SELECT 1 FROM agents WHERE name = o.recipient) AND EXISTS (SELECT 1 FROM agents WHERE name = o.sender);

DROP TABLE temp.done_above;
DROP TABLE backlog_before;

CREATE INDEX backlog_by_number ON backlog (number);
CREATE INDEX backlog_by_expiry ON backlog (expires_at);

-- One row for some of a sender's messages, under the number of the last of them. What came after meta.listed_to is in none.
CREATE TABLE sent_ids (
    last_number INTEGER PRIMARY KEY,
    sender      TEXT NOT NULL COLLATE NOCASE,
    ids         TEXT NOT NULL   -- JSON: [["client id", number], …], ascending
);

CREATE INDEX sent_ids_by_sender ON sent_ids (sender);

INSERT INTO meta (key, value) VALUES ('listed_to', 0);
