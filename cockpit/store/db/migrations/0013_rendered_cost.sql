-- What a fact takes in a prompt, in tokens, at each detail level (0: counted before this was kept,
-- and estimated), and the least level of a pinned fact: 0 full, 1 outline.
ALTER TABLE session_facts ADD COLUMN cost_full INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_facts ADD COLUMN cost_outline INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_facts ADD COLUMN cost_reference INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session_facts ADD COLUMN pin_level INTEGER NOT NULL DEFAULT 0;
CREATE INDEX idx_session_facts_kept ON session_facts(session_id, ordinal)
  WHERE source_type = 'exchange' AND pinned_from IS NOT NULL;
