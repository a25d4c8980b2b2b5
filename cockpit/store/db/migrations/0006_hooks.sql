-- What agents' hooks have told and nobody has absorbed yet. A hook is a short process: it writes its
-- event down here and goes; a moment later one process makes work in progress and journal rows of all
-- of them. `event_key` begins with the event's time and keeps an event single, whichever way it came.
-- `urgent` cuts the wait short (a commit, the end of a turn). `attempts` counts what went wrong.
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

-- Who absorbs: nobody once the moment (milliseconds since 1970) is over.
CREATE TABLE hook_absorber (
  only_row     INTEGER PRIMARY KEY CHECK(only_row = 1),
  leased_until INTEGER NOT NULL
);
INSERT INTO hook_absorber VALUES (1, 0);
