-- The screen opens from the tables: how sessions ended, which belong to a chain, and their sums.

-- `outcome` says how a session ended that did not do its task: 'blocked', 'limit' or 'needs_answer'
-- where the status is 'completed', 'expired' where it is 'waiting'.
ALTER TABLE sessions ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
UPDATE sessions SET outcome=coalesce((
    SELECT CASE WHEN json_valid(j.detail_json) THEN json_extract(j.detail_json, '$.status') END
    FROM journal j WHERE j.session_id=sessions.session_id AND +j.action='session.completed'
    ORDER BY j.seq DESC LIMIT 1), '')
  WHERE status='completed';
UPDATE sessions SET outcome='' WHERE outcome NOT IN ('', 'blocked', 'limit', 'needs_answer');
UPDATE sessions SET outcome='expired'
  WHERE status='waiting' AND (
    SELECT CASE WHEN json_valid(j.detail_json) THEN json_extract(j.detail_json, '$.for') END
    FROM journal j WHERE j.session_id=sessions.session_id AND +j.action='session.waiting'
    ORDER BY j.seq DESC LIMIT 1)='expired';
UPDATE sessions SET chain_id=(
    SELECT r.chain_id FROM task_runs r WHERE r.session_id=sessions.session_id AND r.chain_id<>'' LIMIT 1)
  WHERE role<>'';

CREATE INDEX idx_sessions_live ON sessions(updated_at)
  WHERE chain_id IS NULL AND status IN ('running','waiting');
CREATE INDEX idx_sessions_ended ON sessions(updated_at)
  WHERE chain_id IS NULL AND status NOT IN ('running','waiting');
CREATE INDEX idx_tasks_done ON tasks(done_at) WHERE status='done';
CREATE INDEX idx_chains_ended ON chains(ended_at) WHERE status NOT IN ('running','draining');

-- Sums over the sessions outside chains; `priced` counts those with a known cost.
CREATE TABLE session_totals (
  status   TEXT PRIMARY KEY,
  sessions INTEGER NOT NULL,
  priced   INTEGER NOT NULL,
  cost_usd REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO session_totals
  SELECT CASE outcome WHEN '' THEN status ELSE outcome END, count(*), count(cost_usd),
         coalesce(sum(cost_usd), 0)
  FROM sessions WHERE chain_id IS NULL GROUP BY 1;
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
