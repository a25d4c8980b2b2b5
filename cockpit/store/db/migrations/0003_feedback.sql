-- What a wave's score was made of, and why its decision was regretted (RFC-003 §8.7, §14.1).
-- Later outcomes add a row: the newest of a wave counts, and none is ever changed.

ALTER TABLE orientation_feedback ADD COLUMN regret_flags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE orientation_feedback ADD COLUMN measures_json TEXT NOT NULL DEFAULT '{}';
CREATE TRIGGER orientation_feedback_no_update BEFORE UPDATE ON orientation_feedback
BEGIN SELECT RAISE(ABORT, 'feedback is append-only'); END;
CREATE TRIGGER orientation_feedback_no_delete BEFORE DELETE ON orientation_feedback
WHEN NOT EXISTS (SELECT 1 FROM pruning)
BEGIN SELECT RAISE(ABORT, 'feedback is append-only'); END;
