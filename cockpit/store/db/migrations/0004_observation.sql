-- Fan-out: what a job stands for, what a session saw again, and near-duplicates.

-- The approved item that a job came from (a glob makes many jobs), and how many jobs a refused row
-- stands for. `over` counts facts past the wave's cap.
ALTER TABLE observation_jobs ADD COLUMN asked TEXT NOT NULL DEFAULT '';
ALTER TABLE observation_jobs ADD COLUMN jobs INTEGER NOT NULL DEFAULT 1 CHECK(jobs >= 1);
ALTER TABLE observation_jobs ADD COLUMN over INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_observation_jobs_status ON observation_jobs(wave_id, status);

-- `seen_at` is the last wave that found the fact again (0: none did). Facts of one cluster are
-- near-duplicates: it is the sketch of the first of them, 0 where that is the fact itself.
ALTER TABLE session_facts ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_facts ADD COLUMN sketch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_facts ADD COLUMN cluster INTEGER NOT NULL DEFAULT 0;
