-- Digests of the rows that a step wrote, so that every table can be compared with the journal.
ALTER TABLE journal ADD COLUMN seals TEXT NOT NULL DEFAULT '';
