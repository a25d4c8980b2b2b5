-- What an external agent asks permission for is a proposal of its own kind.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE proposals_kept AS SELECT * FROM proposals ORDER BY rowid;
DROP TABLE proposals;
CREATE TABLE proposals (
  proposal_id  TEXT PRIMARY KEY,
  kind         TEXT NOT NULL CHECK(kind IN ('context','action','profile','skill','permission')),
  session_id   TEXT REFERENCES sessions(session_id),
  wave_id      TEXT NOT NULL,
  task_id      TEXT,
  revises      TEXT REFERENCES proposals(proposal_id),
  title        TEXT NOT NULL,
  body_json    TEXT NOT NULL,
  shown_digest TEXT NOT NULL,
  risk         TEXT NOT NULL CHECK(risk IN ('low','medium','high')),
  status       TEXT NOT NULL CHECK(status IN ('pending','approved','rejected','discussed','expired')),
  narrowed_json TEXT,
  decided_by   TEXT,
  decided_at   TEXT,
  reason       TEXT NOT NULL DEFAULT '',
  expires_at   TEXT,
  created_at   TEXT NOT NULL,
  CHECK((status = 'pending') = (decided_at IS NULL)),
  CHECK(session_id IS NOT NULL OR kind IN ('profile','action'))
);
INSERT INTO proposals(proposal_id, kind, session_id, wave_id, task_id, revises, title, body_json,
  shown_digest, risk, status, narrowed_json, decided_by, decided_at, reason, expires_at, created_at)
SELECT proposal_id, kind, session_id, wave_id, task_id, revises, title, body_json,
  shown_digest, risk, status, narrowed_json, decided_by, decided_at, reason, expires_at, created_at
FROM proposals_kept ORDER BY rowid;
DROP TABLE proposals_kept;
CREATE INDEX idx_proposals_pending ON proposals(created_at) WHERE status = 'pending';
CREATE INDEX idx_proposals_session ON proposals(session_id, created_at);
CREATE INDEX idx_proposals_wave ON proposals(wave_id);
CREATE INDEX idx_proposals_revises ON proposals(revises) WHERE revises IS NOT NULL;
CREATE INDEX idx_proposals_created ON proposals(created_at);
CREATE TRIGGER proposals_decided_once BEFORE UPDATE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;
CREATE TRIGGER proposals_decided_stay BEFORE DELETE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;
