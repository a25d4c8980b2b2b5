-- What the user decided, by the shape of what was asked, and the rules that they accepted.
CREATE TABLE trust_decisions (
  shape_digest TEXT NOT NULL,
  proposal_id  TEXT NOT NULL,
  shape_json   TEXT NOT NULL,
  literal      TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  wave_id      TEXT NOT NULL,
  task_type    TEXT NOT NULL,
  inner_loop   TEXT NOT NULL CHECK(inner_loop IN ('orient','decide')),
  verdict      TEXT NOT NULL CHECK(verdict IN ('approved','narrowed','rejected','discussed','edited')),
  decided_by   TEXT NOT NULL CHECK(decided_by IN ('person','card','rule')),
  risk         TEXT NOT NULL CHECK(risk IN ('low','medium','high')),
  decided_at   TEXT NOT NULL,
  number       INTEGER NOT NULL,
  PRIMARY KEY (shape_digest, proposal_id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX idx_trust_decisions_number ON trust_decisions(number);
CREATE INDEX idx_trust_decisions_shape ON trust_decisions(shape_digest, number);
CREATE INDEX idx_trust_decisions_type ON trust_decisions(task_type, number);
CREATE TABLE trust_rules (
  rule_id      TEXT PRIMARY KEY,
  origin       TEXT NOT NULL CHECK(origin IN ('learned','file')),
  effect       TEXT NOT NULL CHECK(effect IN ('pass','card')),
  shape_json   TEXT NOT NULL,
  task_type    TEXT NOT NULL,
  risk         TEXT NOT NULL CHECK(risk IN ('low','medium','high')),
  status       TEXT NOT NULL CHECK(status IN ('active','suspended','revoked')),
  status_at    TEXT NOT NULL,
  why          TEXT NOT NULL,
  accepted_at  TEXT,
  expires_at   TEXT,
  uses         INTEGER NOT NULL,
  last_used_at TEXT,
  CHECK(effect = 'card' OR risk <> 'high')
) WITHOUT ROWID;
