-- Replies of language models that rated answers, as JSON; the key is a hash of everything they depend on.
CREATE TABLE rating (
  key        TEXT NOT NULL PRIMARY KEY,
  body       TEXT NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX rating_by_age ON rating (created_at)
