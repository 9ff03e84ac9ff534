-- The agents whose version was activated or deactivated; all others are active.
CREATE TABLE agent (
  name        TEXT NOT NULL PRIMARY KEY COLLATE NOCASE,
  is_active   INTEGER NOT NULL,
  modified_at REAL NOT NULL,
  modified_by TEXT NOT NULL
) WITHOUT ROWID
