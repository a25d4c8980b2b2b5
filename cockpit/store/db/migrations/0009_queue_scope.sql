-- A chain works on one epic or one story: its next tasks are read from the queue alone.
ALTER TABLE work_queue ADD COLUMN story_id TEXT NOT NULL DEFAULT '';
ALTER TABLE work_queue ADD COLUMN epic_id TEXT NOT NULL DEFAULT '';
UPDATE work_queue SET
  story_id=coalesce((SELECT t.story_id FROM tasks t WHERE t.task_id=work_queue.task_id), ''),
  epic_id=coalesce((SELECT s.epic_id FROM tasks t JOIN stories s USING(story_id)
                    WHERE t.task_id=work_queue.task_id), '');
CREATE INDEX idx_queue_epic ON work_queue(epic_id, priority_score DESC, number) WHERE ready = 1;
CREATE INDEX idx_queue_story ON work_queue(story_id, priority_score DESC, number) WHERE ready = 1;
