-- The processes of a served org share the concurrency of an agent: what the worker of each run uses and still wants.
CREATE TABLE place (
  run_id TEXT PRIMARY KEY,
  worker TEXT NOT NULL,
  size   INTEGER NOT NULL,
  taken  INTEGER NOT NULL,
  wanted INTEGER NOT NULL,
  seen   REAL NOT NULL
) WITHOUT ROWID
