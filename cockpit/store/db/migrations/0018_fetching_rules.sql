-- Attention rules that fetch: the scope items that sessions of the profile read without asking, and the
-- most jobs that they add to a wave.
ALTER TABLE attention_rules ADD COLUMN fetch_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE attention_rules ADD COLUMN quota INTEGER NOT NULL DEFAULT 32;
