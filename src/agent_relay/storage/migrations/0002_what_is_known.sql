-- What tells, after an error of the disk or a restart, how far the file had come.

INSERT INTO meta (key, value) VALUES
    ('batch', 0),        -- the last transaction of more than messages alone, by its number
    ('seal', 0),         -- counts transactions that only prove that the file can be written again
    ('removed', 0),      -- messages that were pruned or erased; with those there are, all there ever were
    ('first_seq', 0);    -- streams that are new begin after this: up to here numbers may be known of messages that were lost
