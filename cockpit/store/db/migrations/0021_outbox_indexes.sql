-- Every action is written in three steps, and each step writes a page of each index that it changes.
-- Nothing looks actions up by their session and phase, and their rowids are in the order of their times.
DROP INDEX idx_outbox_open;
DROP INDEX idx_outbox_created;
