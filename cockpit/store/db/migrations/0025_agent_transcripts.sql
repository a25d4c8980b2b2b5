-- How far the transcript of an agent in the user's own terminal was read, and what was counted last.
CREATE TABLE agent_transcripts (
  session_id TEXT PRIMARY KEY REFERENCES sessions(session_id),
  read_to    INTEGER NOT NULL,
  seen       TEXT NOT NULL
) WITHOUT ROWID;
