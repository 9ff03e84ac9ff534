-- What a language model said of an answer, as JSON, under a hash of all that it depends on.
CREATE TABLE rating (
  key        TEXT NOT NULL PRIMARY KEY,
  body       TEXT NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX rating_by_age ON rating (created_at)
