-- The answers that HTTP gave to requests with an idempotency key: a repeat gets the same one.
CREATE TABLE kept_answers (
  namespace      TEXT NOT NULL,
  key            TEXT NOT NULL,
  request_digest TEXT NOT NULL,
  status         INTEGER NOT NULL CHECK(status BETWEEN 200 AND 299),
  body_json      TEXT NOT NULL,
  created_at     TEXT NOT NULL,
  PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
CREATE INDEX idx_kept_answers_created ON kept_answers(created_at);
