-- The backlog and what is known of each task (seed 004, solutions 1 to 4).

-- Epics, stories and tasks are numbered and never deleted: what is not wanted is archived, so that an
-- id (E-1, S-12, T-42) means one thing for ever.
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
CREATE INDEX idx_stories_epic ON stories(epic_id, number);

-- `packages_json` and `files_json` are what the task says it will touch; `work_in_progress` is the
-- seed's JSON, NULL until something is known.
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
CREATE INDEX idx_tasks_story ON tasks(story_id, number);
CREATE INDEX idx_tasks_status ON tasks(status, number);
CREATE INDEX idx_tasks_source ON tasks(source) WHERE source <> '';
CREATE TRIGGER epics_stay BEFORE DELETE ON epics
BEGIN SELECT RAISE(ABORT, 'epics are archived, never deleted'); END;
CREATE TRIGGER stories_stay BEFORE DELETE ON stories
BEGIN SELECT RAISE(ABORT, 'stories are archived, never deleted'); END;
CREATE TRIGGER tasks_stay BEFORE DELETE ON tasks
BEGIN SELECT RAISE(ABORT, 'tasks are archived, never deleted'); END;

-- `overtaken`: the task was finished although what it depends on is open. Only through such a pair
-- can two ready tasks depend on each other.
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
CREATE INDEX idx_dependencies_dependents ON task_dependencies(depends_on_task_id, task_id);
CREATE INDEX idx_dependencies_overtaken ON task_dependencies(overtaken) WHERE overtaken = 1;

CREATE TABLE task_activity (
  activity_id   INTEGER PRIMARY KEY,
  task_id       TEXT NOT NULL REFERENCES tasks(task_id),
  activity_type TEXT NOT NULL,
  description   TEXT NOT NULL,
  actor         TEXT NOT NULL,
  created_at    TEXT NOT NULL
);
CREATE INDEX idx_activity_task ON task_activity(task_id, activity_id);

CREATE TABLE task_failures (
  failure_id   INTEGER PRIMARY KEY,
  task_id      TEXT NOT NULL REFERENCES tasks(task_id),
  failure_type TEXT NOT NULL CHECK(failure_type IN ('spec','quality','implementation')),
  reason       TEXT NOT NULL,
  attempt      INTEGER NOT NULL CHECK(attempt >= 1),
  actor        TEXT NOT NULL,
  created_at   TEXT NOT NULL
);
CREATE INDEX idx_failures_task ON task_failures(task_id, failure_id);

CREATE TABLE task_handoffs (
  task_id       TEXT PRIMARY KEY REFERENCES tasks(task_id),
  status        TEXT NOT NULL CHECK(status IN ('PASS','FAIL','BLOCKED')),
  summary       TEXT NOT NULL,
  files_changed TEXT NOT NULL DEFAULT '[]',
  full_details  TEXT,
  created_at    TEXT NOT NULL,
  compacted_at  TEXT
);

-- One row for every task that is neither done nor archived, kept in the transaction of whatever
-- changes it. `claims` are the paths that no other task of its group may touch; `running` tasks hold
-- theirs against group 1. Group 0: not ready, or further down the queue than groups are made.
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
) WITHOUT ROWID;
CREATE INDEX idx_queue_ready ON work_queue(ready, priority_score DESC, number);
CREATE INDEX idx_queue_batch ON work_queue(batch_group, priority_score DESC, number)
  WHERE batch_group > 0;
CREATE INDEX idx_queue_running ON work_queue(running) WHERE running = 1;

-- Which task an agent's session works on: its hooks are processes that share nothing but this file.
CREATE TABLE active_task (
  agent_session TEXT PRIMARY KEY,
  task_id       TEXT NOT NULL REFERENCES tasks(task_id),
  started_at    TEXT NOT NULL
);
CREATE INDEX idx_active_task ON active_task(task_id);
