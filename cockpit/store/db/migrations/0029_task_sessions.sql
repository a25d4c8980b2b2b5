-- The sessions of a task: what agents read in them is given to the next one.
CREATE INDEX idx_sessions_task ON sessions(task_id) WHERE task_id IS NOT NULL;
