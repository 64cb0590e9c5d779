-- Messages of which others get copies: who they are stands in the tail, right behind the sender. Erasing an agent takes it out
-- there, too, and a message that only copies are left of goes with the agent that it was for.

-- What the tail says of copies, as a JSON list; NULL: nothing. `list_at`: the first byte of the list; `list_bytes`: its length.
CREATE FUNCTION find_shadows(p_tail bytea, OUT names jsonb, OUT list_at integer, OUT list_bytes integer)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    quote integer := 8 + position('"'::bytea IN substring(p_tail FROM 9));  -- behind the sender; it begins at byte 9
BEGIN
    IF substring(p_tail FROM quote + 1 FOR 11) = ',"shadows":'::bytea THEN
        list_at := quote + 12;
        list_bytes := position(']'::bytea IN substring(p_tail FROM list_at));
        names := convert_from(substring(p_tail FROM list_at FOR list_bytes), 'UTF8')::jsonb;
    END IF;
END $$;

CREATE FUNCTION without_shadow(p_tail bytea, p_agent text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    found record;
    others jsonb;
BEGIN
    SELECT * INTO found FROM find_shadows(p_tail);
    IF found.names IS NULL THEN
        RETURN p_tail;
    END IF;
    others := (SELECT jsonb_agg(r.value ORDER BY r.n) FROM jsonb_array_elements(found.names) WITH ORDINALITY AS r (value, n)
               WHERE lower((r.value #>> '{}') COLLATE "C") <> p_agent);
    IF others IS NULL THEN  -- the comma and the name of the field go, too
        RETURN substring(p_tail FROM 1 FOR found.list_at - 12) || substring(p_tail FROM found.list_at + found.list_bytes);
    END IF;
    RETURN substring(p_tail FROM 1 FOR found.list_at - 1) || convert_to(others::text, 'UTF8')
        || substring(p_tail FROM found.list_at + found.list_bytes);
END $$;

CREATE OR REPLACE FUNCTION erase_agent(p_generation bigint, p_batch bigint, p_agent text, p_limit bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint[];
    doomed bigint[];
BEGIN
    PERFORM claim(p_generation, p_batch);
    found := ARRAY(SELECT number FROM message_agents WHERE agent = p_agent ORDER BY number LIMIT greatest(p_limit, 0));
    doomed := ARRAY(
        SELECT m.number FROM messages AS m WHERE m.number = ANY (found) AND (lower(m.sender) = p_agent OR NOT EXISTS (
            SELECT 1 FROM jsonb_array_elements(m.recipients) AS r
            WHERE lower((r.value ->> 0) COLLATE "C") <> p_agent
              AND NOT coalesce((SELECT names FROM find_shadows(m.tail)) ? (r.value ->> 0), false))));
    UPDATE messages AS m SET
        tail = without_shadow(m.tail, p_agent),
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
