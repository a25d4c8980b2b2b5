-- Notes: what sessions taught. A proposed note becomes memory only when the user keeps it.
CREATE TABLE notes (
  note_id      TEXT PRIMARY KEY,
  kind         TEXT NOT NULL CHECK(kind IN ('decision','pitfall','command','question')),
  subject      TEXT NOT NULL,
  text         TEXT NOT NULL,
  source       TEXT NOT NULL,
  task_type    TEXT NOT NULL DEFAULT '',
  task_id      TEXT,
  session_id   TEXT REFERENCES sessions(session_id),
  status       TEXT NOT NULL CHECK(status IN ('proposed','kept','forgotten')),
  seen         INTEGER NOT NULL DEFAULT 1,
  contradicted INTEGER NOT NULL DEFAULT 0,
  reason       TEXT NOT NULL DEFAULT '',
  created_at   TEXT NOT NULL,
  updated_at   TEXT NOT NULL
);
-- The same lesson is one note; one that was forgotten may be learned anew.
CREATE UNIQUE INDEX idx_notes_subject ON notes(kind, subject) WHERE status <> 'forgotten';
CREATE INDEX idx_notes_lesson ON notes(kind, subject);
CREATE INDEX idx_notes_status ON notes(status, updated_at);
CREATE INDEX idx_notes_session ON notes(session_id) WHERE session_id IS NOT NULL;
