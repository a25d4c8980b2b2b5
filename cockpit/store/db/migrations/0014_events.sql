-- A wave leases its events until it ends: found by their owner.
CREATE INDEX idx_events_leased ON events(lease_owner) WHERE lease_owner IS NOT NULL;

-- Actions are listed newest first.
CREATE INDEX idx_outbox_created ON outbox_actions(created_at);
