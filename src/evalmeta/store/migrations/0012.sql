-- Workers in several processes share the rate limit of an agent.
CREATE TABLE pace (
  agent      TEXT PRIMARY KEY,
  next_slot  REAL NOT NULL,
  not_before REAL NOT NULL
) WITHOUT ROWID
