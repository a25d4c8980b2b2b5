-- Reads of one wave, one proposal's revisions and the newest rows stay as fast in a large store.
CREATE INDEX idx_proposals_wave ON proposals(wave_id);
CREATE INDEX idx_proposals_revises ON proposals(revises) WHERE revises IS NOT NULL;
CREATE INDEX idx_proposals_created ON proposals(created_at);
CREATE INDEX idx_context_requests_wave ON context_requests(wave_id, call_id);
CREATE INDEX idx_journal_wave ON journal(wave_id, action, seq);
CREATE INDEX idx_profile_changes_created ON profile_change_proposals(created_at);
