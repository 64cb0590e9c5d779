-- The first schema, in a PostgreSQL schema of the project's own (it is the search_path while this runs).
--
-- Messages are partitioned by their number. A number begins with the time it was given out at, so a partition is a day, and what
-- is old goes with its partition. Names are compared as lower(name); every text has the collation "C", where that means ASCII
-- and does not depend on the locale of the server. All changes are made by the functions below, each of which first claims the
-- row of `state` with the generation its caller was given: whoever has lost the project changes nothing.

CREATE TABLE state (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    generation  bigint NOT NULL DEFAULT 0,   -- counts the connections that were given the project to write
    batch       bigint NOT NULL DEFAULT 0,   -- the last change made with this generation, by its number
    result      bigint NOT NULL DEFAULT 0,   -- and what it answered
    host        text COLLATE "C" NOT NULL DEFAULT '',
    pid         integer NOT NULL DEFAULT 0,
    since       bigint NOT NULL DEFAULT 0,
    project     text COLLATE "C" NOT NULL DEFAULT '',
    token       text COLLATE "C" NOT NULL DEFAULT '',   -- drawn by the daemon that has it, and known to no other
    copied_from text COLLATE "C" NOT NULL DEFAULT '',   -- while a copy into this schema is not finished
    messages    bigint NOT NULL DEFAULT 0,
    last_number bigint NOT NULL DEFAULT 0,
    checkpoint  bigint NOT NULL DEFAULT 0,   -- up to here every message is done or in the backlog
    lag_ms      bigint NOT NULL DEFAULT 0,   -- how far at most a message's ts lies before the moment in its number
    first_seq   bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 20);   -- one row that changes with every batch: its versions stay on one page

INSERT INTO state DEFAULT VALUES;

-- How far each generation came, once another took its place: so its last batch can be found out about at any later time.
CREATE TABLE former_generations (
    generation bigint PRIMARY KEY,
    batch      bigint NOT NULL,
    result     bigint NOT NULL
);

CREATE TABLE messages (
    number     bigint NOT NULL,
    ts         bigint NOT NULL,
    expires_at bigint NOT NULL,
    priority   bigint NOT NULL,
    queued     bigint NOT NULL,
    id         text COLLATE "C" NOT NULL,
    sender     text COLLATE "C" NOT NULL,
    client_id  text COLLATE "C" NOT NULL,
    target     text COLLATE "C" NOT NULL,
    topic      text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    thread     text COLLATE "C",
    skipped    jsonb,             -- ["Carol", …], or NULL for none
    recipients jsonb NOT NULL,    -- [["Bob", 12], …]
    tail       bytea NOT NULL,
    words      tsvector NOT NULL,
    PRIMARY KEY (number)
) PARTITION BY RANGE (number);

CREATE INDEX messages_by_word   ON messages USING gin (words);
CREATE INDEX messages_by_topic  ON messages (topic, number)  WHERE topic > '';
CREATE INDEX messages_by_thread ON messages (thread, number) WHERE thread IS NOT NULL;
CREATE INDEX messages_by_target ON messages (target, number) WHERE target > '' AND target < '0';   -- `#channel` and `*`

CREATE TABLE message_agents (
    agent     text COLLATE "C" NOT NULL,   -- the sender and every recipient, in lower case
    number    bigint NOT NULL,
    client_id text COLLATE "C",            -- of the sender
    PRIMARY KEY (agent, number)
) PARTITION BY RANGE (number);

CREATE INDEX message_agents_sent ON message_agents (agent, number) INCLUDE (client_id) WHERE client_id IS NOT NULL;

CREATE TABLE backlog (
    recipient  text COLLATE "C" NOT NULL,
    number     bigint NOT NULL,
    seq        bigint NOT NULL,
    expires_at bigint NOT NULL,
    size       bigint NOT NULL
);

CREATE UNIQUE INDEX backlog_by_number ON backlog (number, lower(recipient));
CREATE INDEX backlog_by_recipient ON backlog (lower(recipient), number);
CREATE INDEX backlog_by_expiry ON backlog (expires_at);

CREATE TABLE streams (
    topic      text COLLATE "C" NOT NULL,
    sender     text COLLATE "C" NOT NULL,
    recipient  text COLLATE "C" NOT NULL,
    last_seq   bigint NOT NULL,
    wire_seq   bigint NOT NULL,
    heard_seq  bigint NOT NULL,
    done_seq   bigint NOT NULL,
    done_above bigint[] NOT NULL
);

CREATE UNIQUE INDEX streams_by_names ON streams (lower(recipient), lower(sender), topic);

CREATE TABLE agents (
    name                text COLLATE "C" NOT NULL,
    cli                 text COLLATE "C",
    uid                 bigint NOT NULL,
    session_id          text COLLATE "C" NOT NULL,
    token_hash          text COLLATE "C" NOT NULL,
    previous_token_hash text COLLATE "C",
    registered_at       bigint NOT NULL,
    last_seen_at        bigint NOT NULL,
    connected           boolean NOT NULL,
    meta                bytea NOT NULL
);

CREATE UNIQUE INDEX agents_by_name ON agents (lower(name));

CREATE TABLE spent_tokens (
    token_hash text COLLATE "C" PRIMARY KEY,
    agent      text COLLATE "C" NOT NULL,
    spent_at   bigint NOT NULL
);

CREATE TABLE subscriptions (
    agent   text COLLATE "C" NOT NULL,
    pattern text COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX subscriptions_by_agent ON subscriptions (lower(agent), pattern);

CREATE TABLE members (
    channel text COLLATE "C" NOT NULL,
    agent   text COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX members_by_channel ON members (channel, lower(agent));

CREATE TABLE trail (
    place     bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    topic     text COLLATE "C" NOT NULL,
    sender    text COLLATE "C" NOT NULL,
    recipient text COLLATE "C" NOT NULL,
    first_seq bigint NOT NULL,
    last_seq  bigint NOT NULL,
    at        bigint NOT NULL,
    event     text COLLATE "C" NOT NULL,
    detail    text COLLATE "C" NOT NULL
);

CREATE INDEX trail_by_stream ON trail (lower(recipient), lower(sender), topic, first_seq, last_seq);

CREATE TABLE dead_letters (
    number    bigint NOT NULL,
    recipient text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    code      text COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX dead_letters_by_number ON dead_letters (number, lower(recipient));
CREATE INDEX dead_letters_by_age ON dead_letters (at);

-- --- the fence -------------------------------------------------------------------------------------------------------------

-- First in every change. It waits for whoever is changing something, and is seen by whoever comes after.
CREATE FUNCTION claim(p_generation bigint, p_batch bigint) RETURNS state LANGUAGE plpgsql AS $$
DECLARE
    mine state;
BEGIN
    UPDATE state SET batch = p_batch, result = 0 WHERE generation = p_generation RETURNING * INTO mine;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another daemon writes this project' USING ERRCODE = 'AR001';
    END IF;
    RETURN mine;
END $$;

CREATE FUNCTION take_place(p_host text, p_pid integer, p_since bigint, p_project text, p_token text)
RETURNS state LANGUAGE plpgsql AS $$
DECLARE
    mine state;
BEGIN
    INSERT INTO former_generations SELECT generation, batch, result FROM state FOR UPDATE;
    UPDATE state SET generation = generation + 1, batch = 0, result = 0, host = p_host, pid = p_pid, since = p_since,
        project = p_project, token = p_token RETURNING * INTO mine;
    DELETE FROM former_generations WHERE generation < mine.generation - 1000;
    RETURN mine;
END $$;

-- --- partitions ------------------------------------------------------------------------------------------------------------

CREATE FUNCTION day_width() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 86400000::bigint * 1048576';

-- Made apart and then attached: other than CREATE TABLE … PARTITION OF, that does not wait for readers.
CREATE FUNCTION make_partitions(p_days bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    day bigint;
    parent text;
    name text;
BEGIN
    FOREACH day IN ARRAY p_days LOOP
        FOREACH parent IN ARRAY ARRAY['messages', 'message_agents'] LOOP
            name := parent || '_' || day;
            IF to_regclass(quote_ident(name)) IS NULL THEN
                EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name, parent);
                EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', parent, name,
                    day * day_width(), least((day + 1)::numeric * day_width(), 9223372036854775807));
            END IF;
        END LOOP;
    END LOOP;
END $$;

CREATE VIEW partition_days (day) AS
    SELECT substring(c.relname FROM 'messages_([0-9]+)$')::bigint
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'messages'::regclass;

-- --- writing ---------------------------------------------------------------------------------------------------------------

-- Everything of a batch but its messages. Whoever is forgotten goes first: the same name may register in the same turn.
CREATE FUNCTION write_rest(p jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    gone text[];
BEGIN
    IF p ? 'forgotten' THEN
        gone := ARRAY(SELECT jsonb_array_elements_text(p -> 'forgotten'));
        DELETE FROM agents WHERE lower(name) = ANY (gone);
        DELETE FROM streams WHERE lower(recipient) = ANY (gone) OR lower(sender) = ANY (gone);
        DELETE FROM subscriptions WHERE lower(agent) = ANY (gone);
        DELETE FROM members WHERE lower(agent) = ANY (gone);
        DELETE FROM spent_tokens WHERE lower(agent) = ANY (gone);
        DELETE FROM backlog WHERE lower(recipient) = ANY (gone);
    END IF;
    IF p ? 'agents' THEN
        INSERT INTO agents SELECT * FROM jsonb_populate_recordset(NULL::agents, p -> 'agents')
        ON CONFLICT (lower(name)) DO UPDATE SET name = excluded.name, cli = excluded.cli, uid = excluded.uid,
            session_id = excluded.session_id, token_hash = excluded.token_hash,
            previous_token_hash = excluded.previous_token_hash, registered_at = excluded.registered_at,
            last_seen_at = excluded.last_seen_at, connected = excluded.connected, meta = excluded.meta;
    END IF;
    IF p ? 'spent_tokens' THEN
        INSERT INTO spent_tokens SELECT * FROM jsonb_populate_recordset(NULL::spent_tokens, p -> 'spent_tokens')
        ON CONFLICT (token_hash) DO UPDATE SET agent = excluded.agent, spent_at = excluded.spent_at;
    END IF;
    IF p ? 'subscriptions_removed' THEN
        DELETE FROM subscriptions AS s USING jsonb_populate_recordset(NULL::subscriptions, p -> 'subscriptions_removed') AS r
        WHERE lower(s.agent) = lower(r.agent) AND s.pattern = r.pattern;
    END IF;
    IF p ? 'subscriptions' THEN
        INSERT INTO subscriptions SELECT * FROM jsonb_populate_recordset(NULL::subscriptions, p -> 'subscriptions')
        ON CONFLICT (lower(agent), pattern) DO UPDATE SET agent = excluded.agent;
    END IF;
    IF p ? 'members_removed' THEN
        DELETE FROM members AS m USING jsonb_populate_recordset(NULL::members, p -> 'members_removed') AS r
        WHERE m.channel = r.channel AND lower(m.agent) = lower(r.agent);
    END IF;
    IF p ? 'members' THEN
        INSERT INTO members SELECT * FROM jsonb_populate_recordset(NULL::members, p -> 'members')
        ON CONFLICT (channel, lower(agent)) DO UPDATE SET agent = excluded.agent;
    END IF;
    IF p ? 'streams' THEN
        INSERT INTO streams SELECT * FROM jsonb_populate_recordset(NULL::streams, p -> 'streams')
        ON CONFLICT (lower(recipient), lower(sender), topic) DO UPDATE SET last_seq = excluded.last_seq,
            wire_seq = excluded.wire_seq, heard_seq = excluded.heard_seq, done_seq = excluded.done_seq,
            done_above = excluded.done_above;
    END IF;
    IF p ? 'trail' THEN
        INSERT INTO trail (topic, sender, recipient, first_seq, last_seq, at, event, detail)
        SELECT r.topic, r.sender, r.recipient, r.first_seq, r.last_seq, r.at, r.event, r.detail
        FROM jsonb_array_elements(p -> 'trail') WITH ORDINALITY AS e (value, n), jsonb_populate_record(NULL::trail, e.value) AS r
        ORDER BY e.n;
    END IF;
    IF p ? 'dead_letters_removed' THEN
        DELETE FROM dead_letters AS d USING jsonb_populate_recordset(NULL::dead_letters, p -> 'dead_letters_removed') AS r
        WHERE d.number = r.number AND lower(d.recipient) = lower(r.recipient);
    END IF;
    IF p ? 'dead_letters' THEN
        INSERT INTO dead_letters SELECT * FROM jsonb_populate_recordset(NULL::dead_letters, p -> 'dead_letters')
        ON CONFLICT (number, lower(recipient)) DO UPDATE SET recipient = excluded.recipient, at = excluded.at,
            code = excluded.code;
    END IF;
    IF p ? 'backlog_removed' THEN
        DELETE FROM backlog AS b USING jsonb_populate_recordset(NULL::backlog, p -> 'backlog_removed') AS r
        WHERE b.number = r.number AND lower(b.recipient) = lower(r.recipient);
    END IF;
    IF p ? 'backlog_added' THEN
        INSERT INTO backlog SELECT * FROM jsonb_populate_recordset(NULL::backlog, p -> 'backlog_added') ON CONFLICT DO NOTHING;
    END IF;
    IF p ? 'checkpoint' THEN
        UPDATE state SET checkpoint = (p ->> 'checkpoint')::bigint;
    END IF;
END $$;

-- Several batches as one transaction, in one round trip.
CREATE FUNCTION write_batches(
    p_generation bigint, p_batch bigint, p_newest bigint, p_lag_ms bigint, p_days bigint[],
    p_number bigint[], p_ts bigint[], p_expires_at bigint[], p_priority bigint[], p_queued bigint[], p_id text[],
    p_sender text[], p_client_id text[], p_target text[], p_topic text[], p_kind text[], p_thread text[], p_skipped jsonb[],
    p_recipients jsonb[], p_tail bytea[], p_words text[],
    p_agent text[], p_agent_number bigint[], p_agent_client_id text[], p_rest jsonb
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    part jsonb;
BEGIN
    PERFORM claim(p_generation, p_batch);
    IF cardinality(p_days) > 0 THEN
        PERFORM make_partitions(p_days);
    END IF;
    IF cardinality(p_number) > 0 THEN
        INSERT INTO messages
        SELECT m.number, m.ts, m.expires_at, m.priority, m.queued, m.id, m.sender, m.client_id, m.target, m.topic, m.kind,
               m.thread, m.skipped, m.recipients, m.tail, array_to_tsvector(string_to_array(m.words, ' '))
        FROM unnest(p_number, p_ts, p_expires_at, p_priority, p_queued, p_id, p_sender, p_client_id, p_target, p_topic, p_kind,
                    p_thread, p_skipped, p_recipients, p_tail, p_words)
             AS m (number, ts, expires_at, priority, queued, id, sender, client_id, target, topic, kind, thread, skipped,
                   recipients, tail, words);
        INSERT INTO message_agents
        SELECT a.agent, a.number, a.client_id FROM unnest(p_agent, p_agent_number, p_agent_client_id) AS a (agent, number, client_id);
        UPDATE state SET messages = messages + cardinality(p_number), last_number = greatest(last_number, p_newest),
            lag_ms = greatest(lag_ms, p_lag_ms);
    END IF;
    IF p_rest IS NOT NULL THEN
        FOR part IN SELECT value FROM jsonb_array_elements(p_rest) LOOP
            PERFORM write_rest(part);
        END LOOP;
    END IF;
    RETURN 0;
END $$;

-- What came after the checkpoint is in the backlog afterwards, unless it is done, and the streams cover its numbers.
CREATE FUNCTION adopt_later(p_generation bigint, p_batch bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    mine state;
BEGIN
    mine := claim(p_generation, p_batch);
    IF mine.checkpoint >= mine.last_number THEN
        RETURN 0;
    END IF;
    CREATE TEMP TABLE later ON COMMIT DROP AS
        SELECT m.number, m.topic, m.sender, m.expires_at, length(m.tail) AS size,
               (r.value ->> 0) COLLATE "C" AS recipient, (r.value ->> 1)::bigint AS seq
        FROM messages AS m, jsonb_array_elements(m.recipients) AS r WHERE m.number > mine.checkpoint;
    INSERT INTO backlog
        SELECT l.recipient, l.number, l.seq, l.expires_at, l.size FROM later AS l LEFT JOIN streams AS s
            ON lower(s.recipient) = lower(l.recipient) AND lower(s.sender) = lower(l.sender) AND s.topic = l.topic
        WHERE s.done_seq IS NULL OR (l.seq > s.done_seq AND l.seq <> ALL (s.done_above))
        ON CONFLICT DO NOTHING;
    INSERT INTO streams
        SELECT topic, (array_agg(sender ORDER BY number))[1], (array_agg(recipient ORDER BY number))[1], max(seq), 0, 0, 0, '{}'
        FROM later GROUP BY topic, lower(sender), lower(recipient)
        ON CONFLICT (lower(recipient), lower(sender), topic)
        DO UPDATE SET last_seq = greatest(streams.last_seq, excluded.last_seq);
    UPDATE state SET checkpoint = mine.last_number;
    RETURN 0;
END $$;

-- --- removing --------------------------------------------------------------------------------------------------------------

CREATE FUNCTION remove_messages(p_numbers bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM message_agents AS a USING (
        SELECT lower(m.sender) AS agent, m.number FROM messages AS m WHERE m.number = ANY (p_numbers)
        UNION
        SELECT lower((r.value ->> 0) COLLATE "C"), m.number
        FROM messages AS m, jsonb_array_elements(m.recipients) AS r WHERE m.number = ANY (p_numbers)
    ) AS gone WHERE a.agent = gone.agent AND a.number = gone.number;
    DELETE FROM messages WHERE number = ANY (p_numbers);
END $$;

-- Drops whole days, as far as they are old and owed to nobody. A reader that takes long is not waited for long: then the rows
-- are deleted like others.
CREATE FUNCTION drop_days(p_newest bigint, p_limit bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old bigint;
    counted bigint;
    removed bigint := 0;
BEGIN
    PERFORM set_config('lock_timeout', '1s', true);
    FOR old IN SELECT day FROM partition_days WHERE (day + 1)::numeric * day_width() - 1 <= p_newest ORDER BY day LOOP
        EXIT WHEN removed >= p_limit;
        CONTINUE WHEN EXISTS (SELECT 1 FROM backlog WHERE number >= old * day_width() AND number < (old + 1) * day_width())
            OR EXISTS (SELECT 1 FROM dead_letters WHERE number >= old * day_width() AND number < (old + 1) * day_width());
        EXECUTE format('SELECT count(*) FROM %I', 'messages_' || old) INTO counted;
        BEGIN
            EXECUTE format('DROP TABLE %I', 'messages_' || old);
            EXECUTE format('DROP TABLE %I', 'message_agents_' || old);
            removed := removed + counted;
        EXCEPTION WHEN lock_not_available THEN
            EXIT;
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', '0', true);
    RETURN removed;
END $$;

CREATE FUNCTION prune(p_generation bigint, p_batch bigint, p_before bigint, p_newest bigint, p_limit bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    mine state;
    doomed bigint[];
    removed bigint := 0;
BEGIN
    mine := claim(p_generation, p_batch);
    IF p_limit > 0 THEN
        removed := drop_days(least(p_newest, mine.checkpoint), p_limit);
        IF removed < p_limit THEN
            doomed := ARRAY(
                SELECT m.number FROM messages AS m
                WHERE m.number <= least(p_newest, mine.checkpoint) AND m.ts < p_before
                  AND NOT EXISTS (SELECT 1 FROM backlog AS b WHERE b.number = m.number)
                  AND NOT EXISTS (SELECT 1 FROM dead_letters AS d WHERE d.number = m.number)
                ORDER BY m.number LIMIT p_limit - removed);
            PERFORM remove_messages(doomed);
            removed := removed + cardinality(doomed);
        END IF;
    END IF;
    DELETE FROM trail WHERE place IN (
        SELECT place FROM (SELECT place, at FROM trail ORDER BY place LIMIT greatest(p_limit, 1) * 4) AS oldest
        WHERE at < p_before);
    DELETE FROM spent_tokens WHERE spent_at < p_before;
    UPDATE state SET messages = messages - removed, result = removed;
    RETURN removed;
END $$;

-- Takes one agent out. What it sent, or alone was sent, goes; what it got with others stays theirs, without it.
CREATE FUNCTION erase_agent(p_generation bigint, p_batch bigint, p_agent text, p_limit bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint[];
    doomed bigint[];
BEGIN
    PERFORM claim(p_generation, p_batch);
    found := ARRAY(SELECT number FROM message_agents WHERE agent = p_agent ORDER BY number LIMIT greatest(p_limit, 0));
    doomed := ARRAY(
        SELECT m.number FROM messages AS m WHERE m.number = ANY (found) AND (lower(m.sender) = p_agent OR NOT EXISTS (
            SELECT 1 FROM jsonb_array_elements(m.recipients) AS r WHERE lower((r.value ->> 0) COLLATE "C") <> p_agent)));
    UPDATE messages AS m SET
        recipients = (SELECT jsonb_agg(r.value ORDER BY r.n) FROM jsonb_array_elements(m.recipients) WITH ORDINALITY AS r (value, n)
                      WHERE lower((r.value ->> 0) COLLATE "C") <> p_agent),
        skipped = (SELECT jsonb_agg(r.value ORDER BY r.n) FROM jsonb_array_elements(m.skipped) WITH ORDINALITY AS r (value, n)
                   WHERE lower((r.value #>> '{}') COLLATE "C") <> p_agent),
        target = CASE WHEN strpos(m.target, ',') = 0 THEN m.target ELSE coalesce((
            SELECT string_agg(t.name, ',' ORDER BY t.n) FROM unnest(string_to_array(m.target, ',')) WITH ORDINALITY AS t (name, n)
            WHERE lower(btrim(t.name) COLLATE "C") <> p_agent), '') END
    WHERE m.number = ANY (found) AND m.number <> ALL (doomed);
    DELETE FROM message_agents WHERE agent = p_agent AND number = ANY (found) AND number <> ALL (doomed);
    DELETE FROM backlog WHERE number = ANY (doomed) OR (number = ANY (found) AND lower(recipient) = p_agent);
    DELETE FROM dead_letters WHERE number = ANY (doomed) OR (number = ANY (found) AND lower(recipient) = p_agent);
    PERFORM remove_messages(doomed);
    IF cardinality(found) < greatest(p_limit, 1) THEN
        DELETE FROM trail WHERE lower(sender) = p_agent OR lower(recipient) = p_agent;
    END IF;
    UPDATE state SET messages = messages - cardinality(doomed), result = cardinality(found);
    RETURN cardinality(found);
END $$;
