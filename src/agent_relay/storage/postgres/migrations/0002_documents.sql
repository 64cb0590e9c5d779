-- Small pieces of the daemon's own state, each under its name. The store does not look into them.

CREATE TABLE documents (
    name    text COLLATE "C" PRIMARY KEY,
    content bytea NOT NULL
);

-- What `write_rest` has done so far, and the documents.
ALTER FUNCTION write_rest(jsonb) RENAME TO write_rows;

CREATE FUNCTION write_rest(p jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM write_rows(p);
    IF p ? 'documents_removed' THEN
        DELETE FROM documents AS d USING jsonb_populate_recordset(NULL::documents, p -> 'documents_removed') AS r
        WHERE d.name = r.name;
    END IF;
    IF p ? 'documents' THEN
        INSERT INTO documents SELECT * FROM jsonb_populate_recordset(NULL::documents, p -> 'documents')
        ON CONFLICT (name) DO UPDATE SET content = excluded.content;
    END IF;
END $$;
