-- SQLite makes a temporary table for each list of more than two values, whenever a statement checks a row
-- against it. Chains of comparisons check the same and need none. Both tables are written at every step of a
-- wave.
PRAGMA defer_foreign_keys = ON;
CREATE TABLE wave_runs_kept AS SELECT * FROM wave_runs ORDER BY rowid;
DROP TABLE wave_runs;
CREATE TABLE wave_runs (
  wave_id                     TEXT PRIMARY KEY,
  session_id                  TEXT NOT NULL REFERENCES sessions(session_id),
  event_id                    TEXT REFERENCES events(event_id),
  ordinal                     INTEGER NOT NULL CHECK(ordinal >= 1),
  phase                       TEXT NOT NULL CHECK(phase = 'observing' OR phase = 'orienting'
    OR phase = 'deciding' OR phase = 'acting' OR phase = 'learning' OR phase = 'completed'
    OR phase = 'created' OR phase = 'failed_retryable' OR phase = 'failed_terminal'),
  reentry_phase               TEXT,
  orientation_packet_id       TEXT,
  orientation_profile_version INTEGER,
  trace_id                    TEXT NOT NULL,
  pinned_now                  TEXT NOT NULL,
  created_at                  TEXT NOT NULL,
  observing_at                TEXT,
  orienting_at                TEXT,
  deciding_at                 TEXT,
  acting_at                   TEXT,
  learning_at                 TEXT,
  ended_at                    TEXT,
  error_class                 TEXT,
  error_detail                TEXT,
  UNIQUE(session_id, ordinal)
);
INSERT INTO wave_runs(wave_id, session_id, event_id, ordinal, phase, reentry_phase, orientation_packet_id,
  orientation_profile_version, trace_id, pinned_now, created_at, observing_at, orienting_at, deciding_at,
  acting_at, learning_at, ended_at, error_class, error_detail)
SELECT wave_id, session_id, event_id, ordinal, phase, reentry_phase, orientation_packet_id,
  orientation_profile_version, trace_id, pinned_now, created_at, observing_at, orienting_at, deciding_at,
  acting_at, learning_at, ended_at, error_class, error_detail
FROM wave_runs_kept ORDER BY rowid;
DROP TABLE wave_runs_kept;

CREATE TABLE outbox_actions_kept AS SELECT * FROM outbox_actions ORDER BY rowid;
DROP TABLE outbox_actions;
CREATE TABLE outbox_actions (
  action_id       TEXT PRIMARY KEY,
  wave_id         TEXT NOT NULL REFERENCES wave_runs(wave_id),
  session_id      TEXT NOT NULL REFERENCES sessions(session_id),
  proposal_id     TEXT REFERENCES proposals(proposal_id),
  position        INTEGER NOT NULL,
  idempotency_key TEXT NOT NULL UNIQUE,
  action_type     TEXT NOT NULL,
  target_adapter  TEXT NOT NULL,
  title           TEXT NOT NULL,
  payload_json    TEXT NOT NULL,
  phase           TEXT NOT NULL CHECK(phase = 'planned' OR phase = 'queued' OR phase = 'dispatched'
    OR phase = 'confirmed' OR phase = 'failed_retryable' OR phase = 'failed_terminal'
    OR phase = 'uncertain'),
  attempts        INTEGER NOT NULL DEFAULT 0,
  max_attempts    INTEGER NOT NULL DEFAULT 3 CHECK(max_attempts >= 1),
  next_retry_at   TEXT,
  lease_owner     TEXT,
  created_at      TEXT NOT NULL,
  updated_at      TEXT NOT NULL,
  last_error      TEXT NOT NULL DEFAULT ''
);
INSERT INTO outbox_actions(action_id, wave_id, session_id, proposal_id, position, idempotency_key,
  action_type, target_adapter, title, payload_json, phase, attempts, max_attempts, next_retry_at,
  lease_owner, created_at, updated_at, last_error)
SELECT action_id, wave_id, session_id, proposal_id, position, idempotency_key, action_type, target_adapter,
  title, payload_json, phase, attempts, max_attempts, next_retry_at, lease_owner, created_at, updated_at,
  last_error
FROM outbox_actions_kept ORDER BY rowid;
DROP TABLE outbox_actions_kept;
CREATE INDEX idx_outbox_wave ON outbox_actions(wave_id, position);
