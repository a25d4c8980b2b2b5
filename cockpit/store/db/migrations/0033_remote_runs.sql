-- Runs of tasks on other machines. `fence` rises with each worker that takes the run up: what an earlier one
-- sends is void.
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
CREATE INDEX idx_remote_runs_open ON remote_runs(state, task_id)
  WHERE state IN ('sent','claimed','returned');
-- The journals of those workers, one chain of digests for each time that a run was taken up.
CREATE TABLE remote_rows (
  task_id TEXT NOT NULL,
  run     INTEGER NOT NULL,
  fence   INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  line    TEXT NOT NULL,
  PRIMARY KEY(task_id, run, fence, seq)
) WITHOUT ROWID;
-- Proposals of those workers, and whether they got the decision. `body_json` is shown again after a restart.
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
CREATE INDEX idx_remote_proposals_open ON remote_proposals(proposal_id) WHERE answered=0;
