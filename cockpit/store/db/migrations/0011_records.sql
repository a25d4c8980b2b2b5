-- Records that can be retried, refused, pruned and still be checked.

-- What a keyed request asked for: a repeat of the key with another body is refused.
ALTER TABLE profile_change_proposals ADD COLUMN request_digest TEXT NOT NULL DEFAULT '';

-- Where the journal begins: the last row that was pruned, with the digest that the next row follows
-- from and how many rows of the chain lie before it. Without a row the journal begins at seq 1.
CREATE TABLE journal_anchor (
  one          INTEGER PRIMARY KEY CHECK(one = 1),
  seq          INTEGER NOT NULL CHECK(seq >= 1),
  digest       TEXT NOT NULL,
  sealed       INTEGER NOT NULL,
  metrics_json TEXT NOT NULL DEFAULT '{}',
  archive      TEXT NOT NULL,
  pruned_at    TEXT NOT NULL
);

-- Dead letters and unacknowledged events are listed newest first.
CREATE INDEX idx_events_created ON events(created_at);
