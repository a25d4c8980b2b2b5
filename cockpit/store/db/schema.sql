-- The schema of a store. A later version adds numbered files; it never changes one that was released.

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
  result          TEXT NOT NULL DEFAULT 'ok' CHECK(result = 'ok' OR result = 'refused' OR result = 'error'),
  latency_ms      INTEGER,
  error_code      TEXT NOT NULL DEFAULT '',
  detail_json     TEXT NOT NULL DEFAULT '{}',
  digest          TEXT
);

CREATE TABLE journal_head (
  one    INTEGER PRIMARY KEY CHECK(one = 1),
  seq    INTEGER NOT NULL,
  digest TEXT NOT NULL,
  sealed INTEGER NOT NULL
);

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
  updated_at       TEXT NOT NULL, outcome TEXT NOT NULL DEFAULT '', agent TEXT NOT NULL DEFAULT '', transport TEXT NOT NULL DEFAULT '', pid TEXT NOT NULL DEFAULT '', cwd TEXT NOT NULL DEFAULT '', branch TEXT NOT NULL DEFAULT '', agent_session TEXT NOT NULL DEFAULT '',
  CHECK((lease_owner IS NULL) = (lease_token IS NULL))
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
  superseded_at    INTEGER, seen_at INTEGER NOT NULL DEFAULT 0, sketch INTEGER NOT NULL DEFAULT 0, cluster INTEGER NOT NULL DEFAULT 0, cost_full INTEGER NOT NULL DEFAULT 0, cost_outline INTEGER NOT NULL DEFAULT 0, cost_reference INTEGER NOT NULL DEFAULT 0, pin_level INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(session_id, ordinal, position)
) WITHOUT ROWID;

CREATE TABLE orientation_profiles (
  profile_id         TEXT NOT NULL,
  version            INTEGER NOT NULL CHECK(version >= 1),
  total_token_budget INTEGER NOT NULL CHECK(total_token_budget > 0),
  horizon_waves      INTEGER NOT NULL CHECK(horizon_waves >= 0),
  status             TEXT NOT NULL DEFAULT 'active',
  ranking            TEXT NOT NULL DEFAULT 'utility' CHECK(ranking IN ('utility','density')),
  base_version       INTEGER,
  -- The profile change that became this version.
  change_id          TEXT,
  updated_by         TEXT NOT NULL,
  updated_at         TEXT NOT NULL, cache_json TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY(profile_id, version),
  CHECK(status IN ('active','candidate','retired'))
);

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
  created_at        TEXT NOT NULL, fetch_json TEXT NOT NULL DEFAULT '[]', quota INTEGER NOT NULL DEFAULT 32,
  PRIMARY KEY (profile_id, profile_version, rule_id),
  FOREIGN KEY (profile_id, profile_version) REFERENCES orientation_profiles(profile_id, version)
);

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

CREATE TABLE pruning (one INTEGER PRIMARY KEY CHECK(one = 1));

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

CREATE TABLE plans (
  plan_id    TEXT PRIMARY KEY,
  wave_id    TEXT NOT NULL UNIQUE REFERENCES wave_runs(wave_id),
  session_id TEXT NOT NULL REFERENCES sessions(session_id),
  text       TEXT NOT NULL,
  calls_json TEXT NOT NULL,
  stop       TEXT NOT NULL,
  created_at TEXT NOT NULL
);

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

CREATE TABLE adaptations (
  profile_id    TEXT NOT NULL,
  version       INTEGER NOT NULL,
  base_version  INTEGER NOT NULL,
  proposal_id   TEXT NOT NULL REFERENCES proposals(proposal_id),
  horizon_waves INTEGER NOT NULL CHECK(horizon_waves >= 1),
  waves_begun   INTEGER NOT NULL DEFAULT 0,
  ended         TEXT CHECK(ended IN ('reverted','promoted','rolled_back')),
  started_at    TEXT NOT NULL,
  ended_at      TEXT,
  PRIMARY KEY(profile_id, version),
  FOREIGN KEY(profile_id, version) REFERENCES orientation_profiles(profile_id, version)
);

CREATE TABLE orientation_feedback (
  feedback_id            TEXT PRIMARY KEY,
  wave_id                TEXT NOT NULL,
  packet_id              TEXT NOT NULL,
  decision_quality_score REAL,
  missed_signal_flags    TEXT,
  operator_feedback      TEXT,
  created_at             TEXT NOT NULL
, regret_flags TEXT NOT NULL DEFAULT '[]', measures_json TEXT NOT NULL DEFAULT '{}');

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
  latency_ms  INTEGER, asked TEXT NOT NULL DEFAULT '', jobs INTEGER NOT NULL DEFAULT 1 CHECK(jobs >= 1), over INTEGER NOT NULL DEFAULT 0,
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

CREATE TABLE epics (
  epic_id     TEXT PRIMARY KEY,
  number      INTEGER NOT NULL UNIQUE CHECK(number >= 1),
  title       TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  priority    TEXT NOT NULL DEFAULT 'P2' CHECK(priority IN ('P0','P1','P2','P3')),
  status      TEXT NOT NULL DEFAULT 'todo'
              CHECK(status IN ('todo','in_progress','review','done','blocked','archived')),
  source      TEXT NOT NULL DEFAULT '',
  created_at  TEXT NOT NULL,
  updated_at  TEXT NOT NULL,
  done_at     TEXT
);

CREATE TABLE stories (
  story_id    TEXT PRIMARY KEY,
  number      INTEGER NOT NULL UNIQUE CHECK(number >= 1),
  epic_id     TEXT REFERENCES epics(epic_id),
  title       TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  status      TEXT NOT NULL DEFAULT 'todo'
              CHECK(status IN ('todo','in_progress','review','done','blocked','archived')),
  created_at  TEXT NOT NULL,
  updated_at  TEXT NOT NULL,
  done_at     TEXT
);

CREATE TABLE tasks (
  task_id             TEXT PRIMARY KEY,
  number              INTEGER NOT NULL UNIQUE CHECK(number >= 1),
  story_id            TEXT REFERENCES stories(story_id),
  title               TEXT NOT NULL,
  description         TEXT NOT NULL DEFAULT '',
  acceptance_criteria TEXT NOT NULL DEFAULT '',
  task_type           TEXT NOT NULL DEFAULT 'feature',
  status              TEXT NOT NULL DEFAULT 'todo'
                      CHECK(status IN ('todo','in_progress','review','done','blocked','archived')),
  estimate_hours      REAL,
  progress_percent    INTEGER NOT NULL DEFAULT 0 CHECK(progress_percent BETWEEN 0 AND 100),
  context_summary     TEXT NOT NULL DEFAULT '',
  handoff_notes       TEXT NOT NULL DEFAULT '',
  blocker             TEXT NOT NULL DEFAULT '',
  needs_rework        INTEGER NOT NULL DEFAULT 0 CHECK(needs_rework IN (0,1)),
  source              TEXT NOT NULL DEFAULT '',
  packages_json       TEXT NOT NULL DEFAULT '[]',
  files_json          TEXT NOT NULL DEFAULT '[]',
  work_in_progress    TEXT,
  wip_updated_at      TEXT,
  session_id          TEXT NOT NULL DEFAULT '',
  created_at          TEXT NOT NULL,
  updated_at          TEXT NOT NULL,
  started_at          TEXT,
  done_at             TEXT
);

CREATE TABLE task_dependencies (
  task_id            TEXT NOT NULL REFERENCES tasks(task_id),
  depends_on_task_id TEXT NOT NULL REFERENCES tasks(task_id),
  dependency_type    TEXT NOT NULL DEFAULT 'blocks'
                     CHECK(dependency_type IN ('blocks','requires','relates_to')),
  overtaken          INTEGER NOT NULL DEFAULT 0 CHECK(overtaken IN (0,1)),
  created_at         TEXT NOT NULL,
  PRIMARY KEY(task_id, depends_on_task_id),
  CHECK(task_id <> depends_on_task_id)
) WITHOUT ROWID;

CREATE TABLE task_activity (
  activity_id   INTEGER PRIMARY KEY,
  task_id       TEXT NOT NULL REFERENCES tasks(task_id),
  activity_type TEXT NOT NULL,
  description   TEXT NOT NULL,
  actor         TEXT NOT NULL,
  created_at    TEXT NOT NULL
);

CREATE TABLE task_failures (
  failure_id   INTEGER PRIMARY KEY,
  task_id      TEXT NOT NULL REFERENCES tasks(task_id),
  failure_type TEXT NOT NULL CHECK(failure_type IN ('spec','quality','implementation')),
  reason       TEXT NOT NULL,
  attempt      INTEGER NOT NULL CHECK(attempt >= 1),
  actor        TEXT NOT NULL,
  created_at   TEXT NOT NULL
);

CREATE TABLE task_handoffs (
  task_id       TEXT PRIMARY KEY REFERENCES tasks(task_id),
  status        TEXT NOT NULL CHECK(status IN ('PASS','FAIL','BLOCKED')),
  summary       TEXT NOT NULL,
  files_changed TEXT NOT NULL DEFAULT '[]',
  full_details  TEXT,
  created_at    TEXT NOT NULL,
  compacted_at  TEXT
);

CREATE TABLE work_queue (
  task_id        TEXT PRIMARY KEY REFERENCES tasks(task_id),
  number         INTEGER NOT NULL,
  priority_score INTEGER NOT NULL,
  unblocks       INTEGER NOT NULL,
  batch_group    INTEGER NOT NULL DEFAULT 0,
  blocked_by     TEXT NOT NULL DEFAULT '[]',
  claims         TEXT NOT NULL DEFAULT '[]',
  ready          INTEGER NOT NULL CHECK(ready IN (0,1)),
  running        INTEGER NOT NULL CHECK(running IN (0,1)),
  computed_at    TEXT NOT NULL
, story_id TEXT NOT NULL DEFAULT '', epic_id TEXT NOT NULL DEFAULT '') WITHOUT ROWID;

CREATE TABLE active_task (
  agent_session TEXT PRIMARY KEY,
  task_id       TEXT NOT NULL REFERENCES tasks(task_id),
  started_at    TEXT NOT NULL
);

CREATE TABLE hook_pending (
  event_key     TEXT PRIMARY KEY,
  at            TEXT NOT NULL,
  agent         TEXT NOT NULL,
  agent_session TEXT NOT NULL,
  event         TEXT NOT NULL,
  task_id       TEXT,
  urgent        INTEGER NOT NULL DEFAULT 0 CHECK(urgent IN (0,1)),
  attempts      INTEGER NOT NULL DEFAULT 0,
  body_json     TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE hook_absorber (
  only_row     INTEGER PRIMARY KEY CHECK(only_row = 1),
  leased_until INTEGER NOT NULL
);

CREATE TABLE worktrees (
  name          TEXT PRIMARY KEY,
  task_id       TEXT REFERENCES tasks(task_id),
  chain_id      TEXT NOT NULL DEFAULT '',
  path          TEXT NOT NULL,
  branch        TEXT NOT NULL,
  base_commit   TEXT NOT NULL,
  status        TEXT NOT NULL DEFAULT 'active'
                CHECK(status IN ('active','merged','conflict','kept','removed')),
  merged_commit TEXT,
  conflicts     TEXT NOT NULL DEFAULT '[]',
  created_at    TEXT NOT NULL,
  updated_at    TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE task_runs (
  task_id     TEXT NOT NULL REFERENCES tasks(task_id),
  run         INTEGER NOT NULL CHECK(run >= 1),
  position    INTEGER NOT NULL CHECK(position >= 1),
  chain_id    TEXT NOT NULL DEFAULT '',
  ordinal     INTEGER NOT NULL DEFAULT 0,
  step        TEXT NOT NULL CHECK(step IN ('implement','test','fix','spec_review','quality_review',
                                           'merge','done','blocked')),
  attempt     INTEGER NOT NULL CHECK(attempt >= 1),
  session_id  TEXT,
  outcome     TEXT,
  detail_json TEXT NOT NULL DEFAULT '{}',
  started_at  TEXT NOT NULL,
  ended_at    TEXT,
  PRIMARY KEY(task_id, run, position)
) WITHOUT ROWID;

CREATE TABLE chains (
  chain_id     TEXT PRIMARY KEY,
  number       INTEGER NOT NULL UNIQUE CHECK(number >= 1),
  scope_kind   TEXT NOT NULL CHECK(scope_kind IN ('epic','story','all')),
  scope_id     TEXT NOT NULL DEFAULT '',
  status       TEXT NOT NULL DEFAULT 'running'
               CHECK(status IN ('running','draining','completed','stopped','failed','limited')),
  reason       TEXT NOT NULL DEFAULT '',
  stop_now     INTEGER NOT NULL DEFAULT 0 CHECK(stop_now IN (0,1)),
  headless     INTEGER NOT NULL CHECK(headless IN (0,1)),
  batch        TEXT NOT NULL,
  approve      TEXT NOT NULL,
  model        TEXT,
  runner       TEXT,
  max_chains   INTEGER NOT NULL CHECK(max_chains >= 1),
  max_cost     REAL,
  max_wall_s   REAL,
  resume_until TEXT,
  base_branch  TEXT NOT NULL DEFAULT '',
  base_commit  TEXT NOT NULL,
  branch       TEXT NOT NULL,
  report_path  TEXT,
  summary_json TEXT NOT NULL DEFAULT '{}',
  owner        TEXT,
  created_at   TEXT NOT NULL,
  updated_at   TEXT NOT NULL,
  began_at     TEXT NOT NULL,
  ended_at     TEXT
);

CREATE TABLE chain_sessions (
  chain_id      TEXT NOT NULL REFERENCES chains(chain_id),
  ordinal       INTEGER NOT NULL CHECK(ordinal >= 1),
  process       TEXT NOT NULL,
  status        TEXT NOT NULL DEFAULT 'running'
                CHECK(status IN ('running','clean','crashed','stopped')),
  reason        TEXT NOT NULL DEFAULT '',
  tokens        INTEGER NOT NULL DEFAULT 0,
  token_limit   INTEGER NOT NULL,
  dropped_share REAL NOT NULL DEFAULT 0,
  cost_usd      REAL NOT NULL DEFAULT 0,
  batches       INTEGER NOT NULL DEFAULT 0,
  started_at    TEXT NOT NULL,
  beat_at       TEXT NOT NULL,
  ended_at      TEXT,
  PRIMARY KEY(chain_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE session_metrics (
  session_id          TEXT PRIMARY KEY,
  chain_id            TEXT NOT NULL,
  ordinal             INTEGER NOT NULL,
  batches_completed   INTEGER NOT NULL DEFAULT 0,
  batches_interrupted INTEGER NOT NULL DEFAULT 0,
  batches_failed      INTEGER NOT NULL DEFAULT 0,
  last_batch_size     INTEGER NOT NULL DEFAULT 0,
  last_batch_outcome  TEXT NOT NULL DEFAULT ''
                      CHECK(last_batch_outcome IN ('','completed','interrupted','failed')),
  tasks_done          INTEGER NOT NULL DEFAULT 0,
  tasks_blocked       INTEGER NOT NULL DEFAULT 0,
  review_failures     INTEGER NOT NULL DEFAULT 0,
  interrupted         INTEGER NOT NULL DEFAULT 0,
  tokens              INTEGER NOT NULL DEFAULT 0,
  created_at          TEXT NOT NULL,
  updated_at          TEXT NOT NULL,
  UNIQUE(chain_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE task_leases (
  task_id    TEXT PRIMARY KEY REFERENCES tasks(task_id),
  owner      TEXT NOT NULL,
  process    TEXT NOT NULL,
  token      TEXT NOT NULL,
  expires_at TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE journal_anchor (
  one          INTEGER PRIMARY KEY CHECK(one = 1),
  seq          INTEGER NOT NULL CHECK(seq >= 1),
  digest       TEXT NOT NULL,
  sealed       INTEGER NOT NULL,
  metrics_json TEXT NOT NULL DEFAULT '{}',
  archive      TEXT NOT NULL,
  pruned_at    TEXT NOT NULL
, kept INTEGER NOT NULL DEFAULT 0, kept_sum TEXT NOT NULL DEFAULT '', own_digest TEXT NOT NULL DEFAULT '');

CREATE TABLE session_totals (
  status   TEXT PRIMARY KEY,
  sessions INTEGER NOT NULL,
  priced   INTEGER NOT NULL,
  cost_usd REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE pruned_sessions (
  session_id TEXT PRIMARY KEY REFERENCES sessions(session_id),
  archive    TEXT NOT NULL,
  pruned_at  TEXT NOT NULL
) WITHOUT ROWID;

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

CREATE TABLE agent_transcripts (
  session_id TEXT PRIMARY KEY REFERENCES sessions(session_id),
  read_to    INTEGER NOT NULL,
  seen       TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE approved_tools (
  tool_id         TEXT PRIMARY KEY,
  name            TEXT NOT NULL,
  kind            TEXT NOT NULL CHECK(kind IN ('own','mcp')),
  place           TEXT NOT NULL,
  digest          TEXT NOT NULL,
  definition_json TEXT NOT NULL,
  approved_by     TEXT NOT NULL,
  approved_at     TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE session_tools (
  session_id TEXT NOT NULL REFERENCES sessions(session_id),
  ordinal    INTEGER NOT NULL,
  tools_json TEXT NOT NULL,
  PRIMARY KEY(session_id, ordinal)
) WITHOUT ROWID;

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

CREATE TABLE estimates (
  subject       TEXT PRIMARY KEY,
  unit          TEXT NOT NULL CHECK(unit IN ('session','task')),
  kind          TEXT NOT NULL,
  family        TEXT NOT NULL CHECK(family IN ('model','offline','script','agent')),
  model         TEXT NOT NULL,
  -- The first estimate and the current one; empty for sessions that are older than estimates.
  made_json     TEXT NOT NULL DEFAULT '',
  now_json      TEXT NOT NULL DEFAULT '',
  -- The journal's row at which it became history; NULL: it teaches nothing, or not yet.
  learned_seq   INTEGER,
  waves         INTEGER NOT NULL DEFAULT 0,
  tokens        INTEGER NOT NULL DEFAULT 0,
  cost_usd      REAL,
  work_ms       INTEGER
);

CREATE TABLE approved_guards (
  guard_id     TEXT PRIMARY KEY,
  digest       TEXT NOT NULL,
  sources_json TEXT NOT NULL,
  approved_by  TEXT NOT NULL,
  approved_at  TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE kept_answers (
  namespace      TEXT NOT NULL,
  key            TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  status         INTEGER NOT NULL CHECK(status BETWEEN 200 AND 299),
  body_json      TEXT NOT NULL,
  created_at     TEXT NOT NULL,
  PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE TABLE remote_runs (
  task_id     TEXT NOT NULL REFERENCES tasks(task_id),
  run         INTEGER NOT NULL CHECK(run >= 1),
  fence       INTEGER NOT NULL DEFAULT 0,
  state       TEXT NOT NULL CHECK(state IN ('sent','claimed','returned','taken','withdrawn')),
  worker      TEXT NOT NULL DEFAULT '',
  base_commit TEXT NOT NULL,
  -- What the worker sent, until it is taken over.
  result_json TEXT NOT NULL DEFAULT '',
  tokens      INTEGER NOT NULL DEFAULT 0,
  cost_usd    REAL,
  PRIMARY KEY(task_id, run)
) WITHOUT ROWID;

CREATE TABLE remote_rows (
  task_id TEXT NOT NULL,
  run     INTEGER NOT NULL,
  fence   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  line    TEXT NOT NULL,
  PRIMARY KEY(task_id, run, fence, seq)
) WITHOUT ROWID;

CREATE TABLE remote_proposals (
  task_id       TEXT NOT NULL,
  run           INTEGER NOT NULL,
  fence         INTEGER NOT NULL,
  remote_id     TEXT NOT NULL,
  remote_digest TEXT NOT NULL,
  proposal_id   TEXT NOT NULL,
  title         TEXT NOT NULL,
  risk          TEXT NOT NULL,
  body_json     TEXT NOT NULL,
  answered      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(task_id, run, fence, remote_id)
) WITHOUT ROWID;

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

CREATE VIEW audit_log AS
  SELECT seq, at, trace_id, session_id, wave_id, packet_id, profile_id, profile_version, actor,
         action, result, error_code, detail_json
  FROM journal
  WHERE action GLOB 'orientation.*' OR action GLOB 'proposal.*' OR action GLOB 'action.*'
     OR action GLOB 'context.*' OR action GLOB 'profile.*' OR action GLOB 'capability.*';

CREATE INDEX idx_journal_session ON journal(session_id, seq);
CREATE INDEX idx_journal_action ON journal(action, seq);
CREATE INDEX idx_journal_provisional ON journal(session_id, seq) WHERE digest IS NULL;
CREATE INDEX idx_events_claimable ON events(source, tier, available_at, event_id)
  WHERE acked_at IS NULL AND dead_letter_at IS NULL;
CREATE INDEX idx_sessions_updated ON sessions(updated_at);
CREATE INDEX idx_messages_session ON messages(session_id, created_at);
CREATE INDEX idx_observed_facts_wave ON observed_facts(wave_id, utility_score DESC);
CREATE INDEX idx_observed_facts_dedupe ON observed_facts(dedupe_key);
CREATE UNIQUE INDEX idx_session_facts_live ON session_facts(session_id, fact_id)
  WHERE superseded_at IS NULL;
CREATE INDEX idx_session_facts_dedupe ON session_facts(session_id, dedupe_key)
  WHERE dedupe_key <> '' AND superseded_at IS NULL;
CREATE UNIQUE INDEX idx_orientation_profile_active ON orientation_profiles(profile_id)
  WHERE status = 'active';
CREATE INDEX idx_attention_rules_profile ON attention_rules(profile_id, profile_version, enabled);
CREATE INDEX idx_context_requests_session ON context_requests(session_id, status);
CREATE UNIQUE INDEX idx_receipts_terminal ON action_receipts(idempotency_key) WHERE terminal = 1;
CREATE INDEX idx_receipts_action ON action_receipts(action_id);
CREATE UNIQUE INDEX idx_adaptations_running ON adaptations(profile_id) WHERE ended IS NULL;
CREATE INDEX idx_orientation_feedback_wave ON orientation_feedback(wave_id);
CREATE INDEX idx_observation_jobs_status ON observation_jobs(wave_id, status);
CREATE INDEX idx_stories_epic ON stories(epic_id, number);
CREATE INDEX idx_tasks_story ON tasks(story_id, number);
CREATE INDEX idx_tasks_status ON tasks(status, number);
CREATE INDEX idx_tasks_source ON tasks(source) WHERE source <> '';
CREATE INDEX idx_dependencies_dependents ON task_dependencies(depends_on_task_id, task_id);
CREATE INDEX idx_dependencies_overtaken ON task_dependencies(overtaken) WHERE overtaken = 1;
CREATE INDEX idx_activity_task ON task_activity(task_id, activity_id);
CREATE INDEX idx_failures_task ON task_failures(task_id, failure_id);
CREATE INDEX idx_queue_ready ON work_queue(ready, priority_score DESC, number);
CREATE INDEX idx_queue_batch ON work_queue(batch_group, priority_score DESC, number)
  WHERE batch_group > 0;
CREATE INDEX idx_queue_running ON work_queue(running) WHERE running = 1;
CREATE INDEX idx_active_task ON active_task(task_id);
CREATE INDEX idx_worktrees_status ON worktrees(status);
CREATE INDEX idx_task_runs_chain ON task_runs(chain_id, task_id);
CREATE INDEX idx_task_runs_session ON task_runs(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_chains_status ON chains(status, number);
CREATE INDEX idx_chain_sessions_status ON chain_sessions(status);
CREATE INDEX idx_session_metrics_created ON session_metrics(created_at);
CREATE INDEX idx_task_leases_owner ON task_leases(owner);
CREATE INDEX idx_queue_epic ON work_queue(epic_id, priority_score DESC, number) WHERE ready = 1;
CREATE INDEX idx_queue_story ON work_queue(story_id, priority_score DESC, number) WHERE ready = 1;
CREATE INDEX idx_events_created ON events(created_at);
CREATE INDEX idx_context_requests_wave ON context_requests(wave_id, call_id);
CREATE INDEX idx_journal_wave ON journal(wave_id, action, seq);
CREATE INDEX idx_proposals_profile ON proposals(created_at) WHERE kind = 'profile';
CREATE INDEX idx_session_facts_kept ON session_facts(session_id, ordinal)
  WHERE source_type = 'exchange' AND pinned_from IS NOT NULL;
CREATE INDEX idx_events_leased ON events(lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX idx_sessions_live ON sessions(updated_at)
  WHERE chain_id IS NULL AND status IN ('running','waiting');
CREATE INDEX idx_sessions_ended ON sessions(updated_at)
  WHERE chain_id IS NULL AND status NOT IN ('running','waiting');
CREATE INDEX idx_tasks_done ON tasks(done_at) WHERE status='done';
CREATE INDEX idx_chains_ended ON chains(ended_at) WHERE status NOT IN ('running','draining');
CREATE INDEX idx_proposals_pending ON proposals(created_at) WHERE status = 'pending';
CREATE INDEX idx_proposals_session ON proposals(session_id, created_at);
CREATE INDEX idx_proposals_wave ON proposals(wave_id);
CREATE INDEX idx_proposals_revises ON proposals(revises) WHERE revises IS NOT NULL;
CREATE INDEX idx_proposals_created ON proposals(created_at);
CREATE INDEX idx_sessions_agent ON sessions(agent, agent_session) WHERE agent<>'';
CREATE UNIQUE INDEX idx_trust_decisions_number ON trust_decisions(number);
CREATE INDEX idx_trust_decisions_shape ON trust_decisions(shape_digest, number);
CREATE INDEX idx_trust_decisions_type ON trust_decisions(task_type, number);
CREATE UNIQUE INDEX idx_notes_subject ON notes(kind, subject) WHERE status <> 'forgotten';
CREATE INDEX idx_notes_lesson ON notes(kind, subject);
CREATE INDEX idx_notes_status ON notes(status, updated_at);
CREATE INDEX idx_notes_session ON notes(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_sessions_task ON sessions(task_id) WHERE task_id IS NOT NULL;
CREATE INDEX idx_estimates_history ON estimates(unit, kind, family, learned_seq)
  WHERE learned_seq IS NOT NULL;
CREATE INDEX idx_kept_answers_created ON kept_answers(created_at);
CREATE INDEX idx_remote_runs_open ON remote_runs(state, task_id)
  WHERE state IN ('sent','claimed','returned');
CREATE INDEX idx_remote_proposals_open ON remote_proposals(proposal_id) WHERE answered=0;
CREATE INDEX idx_outbox_wave ON outbox_actions(wave_id, position);

CREATE TRIGGER orientation_packets_no_update BEFORE UPDATE ON orientation_packets
BEGIN SELECT RAISE(ABORT, 'orientation packets are append-only'); END;

CREATE TRIGGER orientation_packets_no_delete BEFORE DELETE ON orientation_packets
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT RAISE(ABORT, 'orientation packets are append-only'); END;

CREATE TRIGGER action_receipts_no_update BEFORE UPDATE ON action_receipts
BEGIN SELECT RAISE(ABORT, 'receipts are immutable'); END;

CREATE TRIGGER action_receipts_no_delete BEFORE DELETE ON action_receipts
BEGIN SELECT RAISE(ABORT, 'receipts are immutable'); END;

CREATE TRIGGER orientation_feedback_no_update BEFORE UPDATE ON orientation_feedback
BEGIN SELECT RAISE(ABORT, 'feedback is append-only'); END;

CREATE TRIGGER orientation_feedback_no_delete BEFORE DELETE ON orientation_feedback
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT RAISE(ABORT, 'feedback is append-only'); END;

CREATE TRIGGER epics_stay BEFORE DELETE ON epics
BEGIN SELECT RAISE(ABORT, 'epics are archived, never deleted'); END;

CREATE TRIGGER stories_stay BEFORE DELETE ON stories
BEGIN SELECT RAISE(ABORT, 'stories are archived, never deleted'); END;

CREATE TRIGGER tasks_stay BEFORE DELETE ON tasks
BEGIN SELECT RAISE(ABORT, 'tasks are archived, never deleted'); END;

CREATE TRIGGER session_totals_added AFTER INSERT ON sessions WHEN NEW.chain_id IS NULL
BEGIN
  INSERT INTO session_totals
    VALUES (CASE NEW.outcome WHEN '' THEN NEW.status ELSE NEW.outcome END, 1,
            NEW.cost_usd IS NOT NULL, coalesce(NEW.cost_usd, 0))
    ON CONFLICT(status) DO UPDATE SET sessions=sessions+1, priced=priced+excluded.priced,
      cost_usd=cost_usd+excluded.cost_usd;
END;

CREATE TRIGGER session_totals_before AFTER UPDATE OF status, outcome, cost_usd, chain_id ON sessions
WHEN OLD.chain_id IS NULL
BEGIN
  UPDATE session_totals SET sessions=sessions-1, priced=priced-(OLD.cost_usd IS NOT NULL),
      cost_usd=cost_usd-coalesce(OLD.cost_usd, 0)
    WHERE status=CASE OLD.outcome WHEN '' THEN OLD.status ELSE OLD.outcome END;
END;

CREATE TRIGGER session_totals_after AFTER UPDATE OF status, outcome, cost_usd, chain_id ON sessions
WHEN NEW.chain_id IS NULL
BEGIN
  INSERT INTO session_totals
    VALUES (CASE NEW.outcome WHEN '' THEN NEW.status ELSE NEW.outcome END, 1,
            NEW.cost_usd IS NOT NULL, coalesce(NEW.cost_usd, 0))
    ON CONFLICT(status) DO UPDATE SET sessions=sessions+1, priced=priced+excluded.priced,
      cost_usd=cost_usd+excluded.cost_usd;
END;

CREATE TRIGGER session_totals_removed AFTER DELETE ON sessions WHEN OLD.chain_id IS NULL
BEGIN
  UPDATE session_totals SET sessions=sessions-1, priced=priced-(OLD.cost_usd IS NOT NULL),
      cost_usd=cost_usd-coalesce(OLD.cost_usd, 0)
    WHERE status=CASE OLD.outcome WHEN '' THEN OLD.status ELSE OLD.outcome END;
END;

CREATE TRIGGER proposals_decided_once BEFORE UPDATE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;

CREATE TRIGGER proposals_decided_stay BEFORE DELETE ON proposals WHEN OLD.status <> 'pending'
BEGIN SELECT RAISE(ABORT, 'a proposal is decided once'); END;

INSERT INTO journal_head(one, seq, digest, sealed) VALUES (1, 0, '', 0);
INSERT INTO hook_absorber VALUES (1, 0);

-- For other programs: profile changes are proposals; the guard rejects with "CODE: why".
CREATE VIEW profile_change_proposals AS SELECT
  proposal_id,
  json_extract(body_json, '$.requested_by') AS requested_by,
  json_extract(body_json, '$.profile_id') AS base_profile_id,
  json_extract(body_json, '$.base_version') AS base_profile_version,
  json_extract(body_json, '$.effective_waves') AS effective_waves,
  json_extract(body_json, '$.payload') AS proposal_json,
  CASE status WHEN 'discussed' THEN 'rejected' ELSE status END AS status,
  CASE WHEN decided_by = 'guard' THEN substr(reason, 1, instr(reason, ': ') - 1)
    WHEN status IN ('rejected','discussed') THEN status END AS rejection_code,
  CASE WHEN decided_by = 'guard' THEN substr(reason, instr(reason, ': ') + 2)
    WHEN status IN ('rejected','discussed') THEN reason END AS rejection_reason,
  CASE status WHEN 'approved' THEN decided_by END AS approved_by,
  (SELECT version FROM orientation_profiles WHERE change_id = proposals.proposal_id) AS applied_version,
  created_at,
  decided_at
FROM proposals WHERE kind = 'profile';
