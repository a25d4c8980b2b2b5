-- Adaptation, feedback, durable observation jobs and capabilities (RFC-003 §8.6, §8.7, §10.1, §11).

-- A profile change may be proposed outside any session: by a person at the terminal, or a service.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE proposals_kept AS SELECT * FROM proposals ORDER BY rowid;
DROP TABLE proposals;
CREATE TABLE proposals (
  proposal_id  TEXT PRIMARY KEY,
  kind         TEXT NOT NULL CHECK(kind IN ('context','action','profile','skill')),
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
  CHECK(session_id IS NOT NULL OR kind = 'profile')
);
INSERT INTO proposals(proposal_id, kind, session_id, wave_id, task_id, revises, title, body_json,
  shown_digest, risk, status, narrowed_json, decided_by, decided_at, reason, expires_at, created_at)
SELECT proposal_id, kind, session_id, wave_id, task_id, revises, title, body_json,
  shown_digest, risk, status, narrowed_json, decided_by, decided_at, reason, expires_at, created_at
FROM proposals_kept ORDER BY rowid;
DROP TABLE proposals_kept;
CREATE INDEX idx_proposals_pending ON proposals(created_at) WHERE status = 'pending';
CREATE INDEX idx_proposals_session ON proposals(session_id, created_at);
CREATE TRIGGER proposals_decided_once BEFORE UPDATE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;
CREATE TRIGGER proposals_decided_stay BEFORE DELETE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;

-- Who may do what is audited like what was done.
DROP VIEW audit_log;
CREATE VIEW audit_log AS
  SELECT seq, at, trace_id, session_id, wave_id, packet_id, profile_id, profile_version, actor,
         action, result, error_code, detail_json
  FROM journal
  WHERE action GLOB 'orientation.*' OR action GLOB 'proposal.*' OR action GLOB 'action.*'
     OR action GLOB 'context.*' OR action GLOB 'profile.*' OR action GLOB 'capability.*';

CREATE TABLE profile_change_proposals (
  proposal_id           TEXT PRIMARY KEY,
  requested_by          TEXT NOT NULL,
  base_profile_id       TEXT NOT NULL,
  base_profile_version  INTEGER NOT NULL,
  effective_waves       INTEGER NOT NULL,
  proposal_json         TEXT NOT NULL,
  status                TEXT NOT NULL,
  rejection_code        TEXT,
  rejection_reason      TEXT,
  approved_by           TEXT,
  applied_version       INTEGER,
  created_at            TEXT NOT NULL,
  decided_at            TEXT,
  CHECK(status IN ('pending','approved','rejected','expired')),
  CHECK((status = 'pending') = (decided_at IS NULL)),
  CHECK((status = 'rejected') = (rejection_code IS NOT NULL))
);
CREATE INDEX idx_profile_changes_status ON profile_change_proposals(status, created_at);
CREATE TRIGGER profile_changes_decided_once BEFORE UPDATE ON profile_change_proposals
WHEN OLD.status <> 'pending' AND (NEW.status <> OLD.status OR NEW.proposal_json <> OLD.proposal_json)
BEGIN SELECT RAISE(ABORT, 'a profile change is decided once'); END;
CREATE TRIGGER profile_changes_stay BEFORE DELETE ON profile_change_proposals
BEGIN SELECT RAISE(ABORT, 'profile changes are kept'); END;

-- One adaptation at a time for each profile: the version that runs, and what it goes back to.
CREATE TABLE adaptations (
  profile_id    TEXT NOT NULL,
  version       INTEGER NOT NULL,
  base_version  INTEGER NOT NULL,
  proposal_id   TEXT NOT NULL REFERENCES profile_change_proposals(proposal_id),
  horizon_waves INTEGER NOT NULL CHECK(horizon_waves >= 1),
  waves_begun   INTEGER NOT NULL DEFAULT 0,
  ended         TEXT CHECK(ended IN ('reverted','promoted','rolled_back')),
  started_at    TEXT NOT NULL,
  ended_at      TEXT,
  PRIMARY KEY(profile_id, version),
  FOREIGN KEY(profile_id, version) REFERENCES orientation_profiles(profile_id, version)
);
CREATE UNIQUE INDEX idx_adaptations_running ON adaptations(profile_id) WHERE ended IS NULL;

CREATE TABLE orientation_feedback (
  feedback_id            TEXT PRIMARY KEY,
  wave_id                TEXT NOT NULL,
  packet_id              TEXT NOT NULL,
  decision_quality_score REAL,
  missed_signal_flags    TEXT,
  operator_feedback      TEXT,
  created_at             TEXT NOT NULL
);
CREATE INDEX idx_orientation_feedback_wave ON orientation_feedback(wave_id);

-- Observation jobs: planned durably, so that a crash re-runs only those that are not done.
CREATE TABLE observation_jobs (
  wave_id     TEXT NOT NULL REFERENCES wave_runs(wave_id),
  position    INTEGER NOT NULL,
  job         TEXT NOT NULL,
  source_type TEXT NOT NULL,
  item        TEXT NOT NULL,
  status      TEXT NOT NULL CHECK(status IN ('planned','done','failed','timed_out','refused')),
  reason      TEXT NOT NULL DEFAULT '',
  facts       INTEGER NOT NULL DEFAULT 0,
  tokens      INTEGER NOT NULL DEFAULT 0,
  latency_ms  INTEGER,
  PRIMARY KEY(wave_id, position)
) WITHOUT ROWID;

CREATE TABLE principals (
  namespace  TEXT PRIMARY KEY,
  kind       TEXT NOT NULL CHECK(kind IN ('person','agent','service')),
  created_at TEXT NOT NULL
);

CREATE TABLE capability_tokens (
  cap_id      TEXT PRIMARY KEY,
  namespace   TEXT NOT NULL REFERENCES principals(namespace),
  scopes_json TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  expires_at  TEXT,
  revoked_at  TEXT,
  issued_by   TEXT NOT NULL,
  created_at  TEXT NOT NULL
);
