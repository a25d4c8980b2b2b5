-- The spine: events, sessions, waves, facts, profiles, packets, proposals, outbox, journal.
-- Tables of RFC-003 §8 keep its CHECKs; where its text contradicts itself they are mended as the
-- decision records say: profiles keep all versions, one packet per wave, packets append-only.

CREATE TABLE journal (
  seq             INTEGER PRIMARY KEY,
  at              TEXT NOT NULL,
  trace_id        TEXT NOT NULL DEFAULT '',
  session_id      TEXT NOT NULL DEFAULT '',
  wave_id         TEXT NOT NULL DEFAULT '',
  packet_id       TEXT NOT NULL DEFAULT '',
  profile_id      TEXT NOT NULL DEFAULT '',
  profile_version INTEGER,
  actor           TEXT NOT NULL,
  action          TEXT NOT NULL,
  result          TEXT NOT NULL DEFAULT 'ok' CHECK(result IN ('ok','refused','error')),
  latency_ms      INTEGER,
  error_code      TEXT NOT NULL DEFAULT '',
  detail_json     TEXT NOT NULL DEFAULT '{}',
  digest          TEXT
);
CREATE INDEX idx_journal_session ON journal(session_id, seq);
CREATE INDEX idx_journal_action ON journal(action, seq);
CREATE INDEX idx_journal_provisional ON journal(session_id, seq) WHERE digest IS NULL;

CREATE TABLE journal_head (
  one    INTEGER PRIMARY KEY CHECK(one = 1),
  seq    INTEGER NOT NULL,
  digest TEXT NOT NULL,
  sealed INTEGER NOT NULL
);
INSERT INTO journal_head(one, seq, digest, sealed) VALUES (1, 0, '', 0);

CREATE VIEW audit_log AS
  SELECT seq, at, trace_id, session_id, wave_id, packet_id, profile_id, profile_version, actor,
         action, result, error_code, detail_json
  FROM journal
  WHERE action GLOB 'orientation.*' OR action GLOB 'proposal.*' OR action GLOB 'action.*'
     OR action GLOB 'context.*' OR action GLOB 'profile.*';

CREATE TABLE events (
  event_id         TEXT PRIMARY KEY,
  source           TEXT NOT NULL,
  source_event_id  TEXT NOT NULL,
  event_type       TEXT NOT NULL,
  tier             INTEGER NOT NULL DEFAULT 1 CHECK(tier BETWEEN 0 AND 3),
  payload_json     TEXT NOT NULL,
  created_at       TEXT NOT NULL,
  available_at     TEXT NOT NULL,
  attempts         INTEGER NOT NULL DEFAULT 0,
  max_attempts     INTEGER NOT NULL DEFAULT 5 CHECK(max_attempts >= 1),
  lease_owner      TEXT,
  lease_token      TEXT,
  lease_expires_at TEXT,
  acked_at         TEXT,
  nacked_at        TEXT,
  dead_letter_at   TEXT,
  last_error       TEXT,
  trace_id         TEXT NOT NULL DEFAULT '',
  UNIQUE(source, source_event_id),
  CHECK(acked_at IS NULL OR dead_letter_at IS NULL),
  CHECK((lease_owner IS NULL) = (lease_token IS NULL)),
  CHECK((lease_token IS NULL) = (lease_expires_at IS NULL))
);
CREATE INDEX idx_events_claimable ON events(source, tier, available_at, event_id)
  WHERE acked_at IS NULL AND dead_letter_at IS NULL;

CREATE TABLE sessions (
  session_id       TEXT PRIMARY KEY,
  trace_id         TEXT NOT NULL,
  task_type        TEXT NOT NULL,
  title            TEXT NOT NULL,
  words            TEXT NOT NULL,
  target_json      TEXT NOT NULL DEFAULT '{}',
  model            TEXT NOT NULL,
  policy           TEXT NOT NULL CHECK(policy IN ('ask','trusted','reads','all')),
  interactive      INTEGER NOT NULL DEFAULT 0,
  status           TEXT NOT NULL CHECK(status IN ('running','waiting','completed','failed','stopped')),
  root             TEXT NOT NULL,
  rev              TEXT,
  role             TEXT NOT NULL DEFAULT '',
  task_id          TEXT,
  chain_id         TEXT,
  profile_id       TEXT NOT NULL,
  limits_json      TEXT NOT NULL DEFAULT '{}',
  result_json      TEXT NOT NULL DEFAULT '{}',
  input_tokens     INTEGER NOT NULL DEFAULT 0,
  output_tokens    INTEGER NOT NULL DEFAULT 0,
  cached_tokens    INTEGER NOT NULL DEFAULT 0,
  cost_usd         REAL,
  lease_owner      TEXT,
  lease_token      TEXT,
  lease_expires_at TEXT,
  created_at       TEXT NOT NULL,
  updated_at       TEXT NOT NULL,
  CHECK((lease_owner IS NULL) = (lease_token IS NULL))
);
CREATE INDEX idx_sessions_updated ON sessions(updated_at);

CREATE TABLE wave_runs (
  wave_id                     TEXT PRIMARY KEY,
  session_id                  TEXT NOT NULL REFERENCES sessions(session_id),
  event_id                    TEXT REFERENCES events(event_id),
  ordinal                     INTEGER NOT NULL CHECK(ordinal >= 1),
  phase                       TEXT NOT NULL CHECK(phase IN ('created','observing','orienting',
    'deciding','acting','learning','completed','failed_retryable','failed_terminal')),
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

CREATE TABLE messages (
  message_id  TEXT PRIMARY KEY,
  session_id  TEXT NOT NULL REFERENCES sessions(session_id),
  wave_id     TEXT,
  role        TEXT NOT NULL CHECK(role IN ('person','agent','notice')),
  text        TEXT NOT NULL,
  interrupted INTEGER NOT NULL DEFAULT 0,
  created_at  TEXT NOT NULL
);
CREATE INDEX idx_messages_session ON messages(session_id, created_at);

CREATE TABLE observed_facts (
  fact_id          TEXT PRIMARY KEY,
  wave_id          TEXT NOT NULL,
  source_type      TEXT NOT NULL,
  source_ref       TEXT,
  provenance_json  TEXT NOT NULL,
  normalized_json  TEXT NOT NULL,
  dedupe_key       TEXT,
  utility_score    REAL NOT NULL,
  estimated_tokens INTEGER NOT NULL,
  created_at       TEXT NOT NULL
);
CREATE INDEX idx_observed_facts_wave ON observed_facts(wave_id, utility_score DESC);
CREATE INDEX idx_observed_facts_dedupe ON observed_facts(dedupe_key);

-- One row per fact and session: the compiler's input, in columns, without the words.
CREATE TABLE session_facts (
  session_id       TEXT NOT NULL REFERENCES sessions(session_id),
  ordinal          INTEGER NOT NULL,
  position         INTEGER NOT NULL,
  fact_id          TEXT NOT NULL,
  wave_id          TEXT NOT NULL,
  job              TEXT NOT NULL DEFAULT '',
  source_type      TEXT NOT NULL,
  source_ref       TEXT NOT NULL,
  band             TEXT NOT NULL CHECK(band IN
    ('identity','objectives','capabilities','situational','exploration','reserve')),
  utility          INTEGER NOT NULL,
  tokens_full      INTEGER NOT NULL,
  tokens_outline   INTEGER NOT NULL,
  tokens_reference INTEGER NOT NULL,
  dedupe_key       TEXT NOT NULL DEFAULT '',
  pinned_from      INTEGER,
  pinned_until     INTEGER,
  superseded_at    INTEGER,
  PRIMARY KEY(session_id, ordinal, position)
) WITHOUT ROWID;
-- The same content may come back after it was superseded (A, then B, then A again): a new link.
CREATE UNIQUE INDEX idx_session_facts_live ON session_facts(session_id, fact_id)
  WHERE superseded_at IS NULL;
CREATE INDEX idx_session_facts_dedupe ON session_facts(session_id, dedupe_key)
  WHERE dedupe_key <> '' AND superseded_at IS NULL;

CREATE TABLE orientation_profiles (
  profile_id         TEXT NOT NULL,
  version            INTEGER NOT NULL CHECK(version >= 1),
  total_token_budget INTEGER NOT NULL CHECK(total_token_budget > 0),
  horizon_waves      INTEGER NOT NULL CHECK(horizon_waves >= 0),
  status             TEXT NOT NULL DEFAULT 'active',
  ranking            TEXT NOT NULL DEFAULT 'utility' CHECK(ranking IN ('utility','density')),
  base_version       INTEGER,
  updated_by         TEXT NOT NULL,
  updated_at         TEXT NOT NULL,
  PRIMARY KEY(profile_id, version),
  CHECK(status IN ('active','candidate','retired'))
);
CREATE UNIQUE INDEX idx_orientation_profile_active ON orientation_profiles(profile_id)
  WHERE status = 'active';

CREATE TABLE orientation_budget_bands (
  profile_id      TEXT NOT NULL,
  profile_version INTEGER NOT NULL,
  band            TEXT NOT NULL,
  min_tokens      INTEGER NOT NULL,
  target_tokens   INTEGER NOT NULL,
  max_tokens      INTEGER NOT NULL,
  PRIMARY KEY (profile_id, profile_version, band),
  FOREIGN KEY (profile_id, profile_version) REFERENCES orientation_profiles(profile_id, version),
  CHECK(band IN ('identity','objectives','capabilities','situational','exploration','reserve')),
  CHECK(min_tokens >= 0),
  CHECK(target_tokens >= min_tokens),
  CHECK(max_tokens >= target_tokens)
);

CREATE TABLE attention_rules (
  rule_id           TEXT NOT NULL,
  profile_id        TEXT NOT NULL,
  profile_version   INTEGER NOT NULL,
  source_type       TEXT NOT NULL,
  predicate_json    TEXT NOT NULL,
  priority_weight   REAL NOT NULL,
  novelty_weight    REAL NOT NULL,
  risk_weight       REAL NOT NULL,
  recency_half_life INTEGER NOT NULL,
  enabled           INTEGER NOT NULL DEFAULT 1,
  created_at        TEXT NOT NULL,
  PRIMARY KEY (profile_id, profile_version, rule_id),
  FOREIGN KEY (profile_id, profile_version) REFERENCES orientation_profiles(profile_id, version)
);
CREATE INDEX idx_attention_rules_profile ON attention_rules(profile_id, profile_version, enabled);

CREATE TABLE orientation_packets (
  packet_id       TEXT PRIMARY KEY,
  wave_id         TEXT NOT NULL UNIQUE REFERENCES wave_runs(wave_id),
  profile_id      TEXT NOT NULL,
  profile_version INTEGER NOT NULL,
  token_budget    INTEGER NOT NULL,
  token_used      INTEGER NOT NULL,
  packet_json     TEXT NOT NULL,
  digest_sha256   TEXT NOT NULL,
  created_at      TEXT NOT NULL,
  CHECK(token_used <= token_budget)
);

-- Packets are append-only; pruning announces itself by a row here, in its own transaction. REPLACE
-- removes rows as well: connections set recursive_triggers so that it meets the same triggers.
CREATE TABLE pruning (one INTEGER PRIMARY KEY CHECK(one = 1));
CREATE TRIGGER orientation_packets_no_update BEFORE UPDATE ON orientation_packets
BEGIN SELECT RAISE(ABORT, 'orientation packets are append-only'); END;
CREATE TRIGGER orientation_packets_no_delete BEFORE DELETE ON orientation_packets
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT RAISE(ABORT, 'orientation packets are append-only'); END;

CREATE TABLE context_requests (
  request_id  TEXT PRIMARY KEY,
  session_id  TEXT NOT NULL REFERENCES sessions(session_id),
  wave_id     TEXT NOT NULL,
  call_id     TEXT NOT NULL DEFAULT '',
  proposal_id TEXT,
  purpose     TEXT NOT NULL CHECK(purpose <> ''),
  question    TEXT NOT NULL CHECK(question <> ''),
  scope_json  TEXT NOT NULL CHECK(scope_json NOT IN ('', '[]')),
  escalation  TEXT NOT NULL DEFAULT '',
  status      TEXT NOT NULL CHECK(status IN ('pending','approved','rejected','discussed','expired','fetched')),
  approved_json TEXT NOT NULL DEFAULT '[]',
  outcome_json  TEXT NOT NULL DEFAULT '[]',
  decided_by  TEXT NOT NULL DEFAULT '',
  created_at  TEXT NOT NULL,
  decided_at  TEXT,
  fetched_at  TEXT
);
CREATE INDEX idx_context_requests_session ON context_requests(session_id, status);

CREATE TABLE proposals (
  proposal_id  TEXT PRIMARY KEY,
  kind         TEXT NOT NULL CHECK(kind IN ('context','action','profile','skill')),
  session_id   TEXT NOT NULL REFERENCES sessions(session_id),
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
  CHECK((status = 'pending') = (decided_at IS NULL))
);
CREATE INDEX idx_proposals_pending ON proposals(created_at) WHERE status = 'pending';
CREATE INDEX idx_proposals_session ON proposals(session_id, created_at);
CREATE TRIGGER proposals_decided_once BEFORE UPDATE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;
CREATE TRIGGER proposals_decided_stay BEFORE DELETE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;

CREATE TABLE plans (
  plan_id    TEXT PRIMARY KEY,
  wave_id    TEXT NOT NULL UNIQUE REFERENCES wave_runs(wave_id),
  session_id TEXT NOT NULL REFERENCES sessions(session_id),
  text       TEXT NOT NULL,
  calls_json TEXT NOT NULL,
  stop       TEXT NOT NULL,
  created_at TEXT NOT NULL
);

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
  phase           TEXT NOT NULL CHECK(phase IN ('planned','queued','dispatched','confirmed',
    'failed_retryable','failed_terminal','uncertain')),
  attempts        INTEGER NOT NULL DEFAULT 0,
  max_attempts    INTEGER NOT NULL DEFAULT 3 CHECK(max_attempts >= 1),
  next_retry_at   TEXT,
  lease_owner     TEXT,
  created_at      TEXT NOT NULL,
  updated_at      TEXT NOT NULL,
  last_error      TEXT NOT NULL DEFAULT ''
);
CREATE INDEX idx_outbox_open ON outbox_actions(session_id, phase)
  WHERE phase NOT IN ('confirmed','failed_terminal');
CREATE INDEX idx_outbox_wave ON outbox_actions(wave_id, position);

CREATE TABLE action_receipts (
  receipt_id      TEXT PRIMARY KEY,
  action_id       TEXT NOT NULL REFERENCES outbox_actions(action_id),
  idempotency_key TEXT NOT NULL,
  attempt         INTEGER NOT NULL,
  status          TEXT NOT NULL CHECK(status IN ('success','failure','timeout')),
  terminal        INTEGER NOT NULL,
  summary         TEXT NOT NULL,
  detail_json     TEXT NOT NULL,
  created_at      TEXT NOT NULL
);
CREATE UNIQUE INDEX idx_receipts_terminal ON action_receipts(idempotency_key) WHERE terminal = 1;
CREATE INDEX idx_receipts_action ON action_receipts(action_id);
CREATE TRIGGER action_receipts_no_update BEFORE UPDATE ON action_receipts
BEGIN SELECT RAISE(ABORT, 'receipts are immutable'); END;
CREATE TRIGGER action_receipts_no_delete BEFORE DELETE ON action_receipts
BEGIN SELECT RAISE(ABORT, 'receipts are immutable'); END;
