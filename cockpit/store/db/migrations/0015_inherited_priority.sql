-- A task has at least the priority of what waits for it: the first digit of its score. Ranks go down
-- the dependencies at most once each, so this reads every dependency at most four times. Groups follow
-- with the next change of a task.
WITH RECURSIVE ranks(task_id, rank) AS (
  SELECT task_id, priority_score / 1000000000 FROM work_queue
  UNION
  SELECT q.task_id, r.rank FROM ranks r
    JOIN task_dependencies d ON d.task_id = r.task_id
    JOIN work_queue q ON q.task_id = d.depends_on_task_id
    WHERE d.dependency_type <> 'relates_to'
),
highest(task_id, rank) AS (SELECT task_id, max(rank) FROM ranks GROUP BY task_id)
UPDATE work_queue SET priority_score = priority_score % 1000000000 + h.rank * 1000000000
  FROM highest h
  WHERE h.task_id = work_queue.task_id AND h.rank > work_queue.priority_score / 1000000000;
