-- Tasks that are done by roles, one step after the other, each in a working tree of its own (seed 004,
-- solutions 6 to 8).

-- The working trees that cockpit made: `name` is the task's id, or that of the chain whose branch is
-- checked out there. A row is written before the tree is, so that one that a crash left is known.
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
CREATE INDEX idx_worktrees_status ON worktrees(status);

-- The steps of a task's runs. `run` counts a task's runs from 1: one that was blocked and is taken up
-- again begins a new one. A step without an outcome is the one that is under way, or was when its
-- process died; the next process takes it up there. `session_id` is the engine session of a role.
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
CREATE INDEX idx_task_runs_chain ON task_runs(chain_id, task_id);
CREATE INDEX idx_task_runs_session ON task_runs(session_id) WHERE session_id IS NOT NULL;
