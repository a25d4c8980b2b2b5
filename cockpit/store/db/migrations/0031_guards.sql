-- Guards of the user and of projects: the sources that the user approved, by digest. What runs is what is here.
CREATE TABLE approved_guards (
  guard_id     TEXT PRIMARY KEY,
  digest       TEXT NOT NULL,
  sources_json TEXT NOT NULL,
  approved_by  TEXT NOT NULL,
  approved_at  TEXT NOT NULL
) WITHOUT ROWID;
