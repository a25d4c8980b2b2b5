-- Chains: work on a scope of the backlog over as many processes as it takes (seed 004, solutions 6
-- and 7, phase 4).

-- `status` draining: what is under way is finished or put down in order, and nothing new is begun;
-- `stop_now`: nor is it waited for. `owner` is the process that watches over the chain's sessions.
-- `began_at`: when it was begun, or last gone on with. `summary_json` keeps for the report what decays before the chain ends.
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
CREATE INDEX idx_chains_status ON chains(status, number);

-- One process each. `clean` and `stopped` ended in order; `crashed` without a word. `process` is its
-- pid and start time; `tokens` against `token_limit` and `dropped_share` are its context pressure.
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
CREATE INDEX idx_chain_sessions_status ON chain_sessions(status);

-- What a session of a chain got done. `session_id` is written `ch-3/s2`.
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
CREATE INDEX idx_session_metrics_created ON session_metrics(created_at);

-- Who does a task now: at most one, whatever process. `owner` is a chain's session (`ch-3/s2`).
CREATE TABLE task_leases (
  task_id    TEXT PRIMARY KEY REFERENCES tasks(task_id),
  owner      TEXT NOT NULL,
  process    TEXT NOT NULL,
  token      TEXT NOT NULL,
  expires_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX idx_task_leases_owner ON task_leases(owner);
