-- Tools that the user approved, by digest, and those that a session was offered from a wave on.
CREATE TABLE approved_tools (
  tool_id         TEXT PRIMARY KEY,
  name            TEXT NOT NULL,
  kind            TEXT NOT NULL CHECK(kind IN ('own','mcp')),
  place           TEXT NOT NULL,
  digest          TEXT NOT NULL,
  definition_json TEXT NOT NULL,
  approved_by     TEXT NOT NULL,
  approved_at     TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE session_tools (
  session_id TEXT NOT NULL REFERENCES sessions(session_id),
  ordinal    INTEGER NOT NULL,
  tools_json TEXT NOT NULL,
  PRIMARY KEY(session_id, ordinal)
) WITHOUT ROWID;
