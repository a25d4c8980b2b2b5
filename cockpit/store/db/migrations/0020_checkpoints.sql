-- How far the journal was verified and counted, so that both go on from there. A checkpoint names the
-- row of the chain that it was made at; it holds only while that row has that digest.
CREATE TABLE journal_checkpoints (
  name      TEXT PRIMARY KEY CHECK(name IN ('verified', 'metrics')),
  seq       INTEGER NOT NULL,
  digest    TEXT NOT NULL,
  body_json TEXT NOT NULL,
  stored_at TEXT NOT NULL
) WITHOUT ROWID;
