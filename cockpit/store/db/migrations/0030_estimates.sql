-- What sessions and tasks are estimated to take, and what they took: the history of later estimates.
CREATE TABLE estimates (
  subject       TEXT PRIMARY KEY,
  unit          TEXT NOT NULL CHECK(unit IN ('session','task')),
  kind          TEXT NOT NULL,
  family        TEXT NOT NULL CHECK(family IN ('model','offline','script','agent')),
  model         TEXT NOT NULL,
  size          INTEGER NOT NULL,
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
CREATE INDEX idx_estimates_history ON estimates(unit, kind, family, learned_seq)
  WHERE learned_seq IS NOT NULL;

-- Sessions of the built-in agent that ended as done before there were estimates are history, too.
INSERT INTO estimates(subject, unit, kind, family, model, size, learned_seq, waves, tokens, cost_usd)
  SELECT s.session_id, 'session', s.task_type || CASE s.role WHEN '' THEN '' ELSE '/' || s.role END,
         CASE WHEN s.model='offline' THEN 'offline' WHEN s.model LIKE 'script:%' THEN 'script'
              ELSE 'model' END,
         s.model, 0,
         coalesce((SELECT max(j.seq) FROM journal j
                   WHERE j.session_id=s.session_id AND +j.action='session.completed'), 0),
         (SELECT count(*) FROM wave_runs w WHERE w.session_id=s.session_id AND w.phase='completed'),
         s.input_tokens + s.output_tokens, s.cost_usd
  FROM sessions s
  WHERE s.status='completed' AND s.outcome='' AND s.agent='' AND s.transport=''
    AND s.task_type<>'outside' AND s.model NOT LIKE 'runner:%'
    AND json_valid(s.result_json) AND json_extract(s.result_json, '$.status')='done'
    AND EXISTS (SELECT 1 FROM wave_runs w WHERE w.session_id=s.session_id AND w.phase='completed');
