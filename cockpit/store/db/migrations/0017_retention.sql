-- Sessions whose facts and packets were archived: marked before the first row is deleted, so that
-- none of them resumes with a part of its facts.
CREATE TABLE pruned_sessions (
  session_id TEXT PRIMARY KEY REFERENCES sessions(session_id),
  archive    TEXT NOT NULL,
  pruned_at  TEXT NOT NULL
) WITHOUT ROWID;

-- Rows before the anchor that stay, because open sessions or commands still read them: how many, and
-- the sum of their digests. The anchor's own digest covers all of its columns.
ALTER TABLE journal_anchor ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE journal_anchor ADD COLUMN kept_sum TEXT NOT NULL DEFAULT '';
ALTER TABLE journal_anchor ADD COLUMN own_digest TEXT NOT NULL DEFAULT '';
