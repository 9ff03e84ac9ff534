-- The first layout. Times are seconds since the epoch.
CREATE TABLE counter (
  prefix TEXT NOT NULL PRIMARY KEY,
  last   INTEGER NOT NULL
);

-- API names ignore case, as in Salesforce.
CREATE TABLE component (
  type        TEXT NOT NULL,
  full_name   TEXT NOT NULL COLLATE NOCASE,
  id          TEXT NOT NULL UNIQUE,
  content     BLOB NOT NULL,
  created_at  REAL NOT NULL,
  modified_at REAL NOT NULL,
  PRIMARY KEY (type, full_name)
);

-- Deployments and retrieves, with the reply to status requests.
CREATE TABLE job (
  id         TEXT NOT NULL PRIMARY KEY,
  kind       TEXT NOT NULL,
  created_at REAL NOT NULL,
  reply      BLOB NOT NULL
);

CREATE TABLE run (
  id              TEXT NOT NULL PRIMARY KEY,
  definition      TEXT NOT NULL,
  content         BLOB NOT NULL,
  subject_name    TEXT NOT NULL,
  subject_version TEXT,
  status          TEXT NOT NULL,
  options         BLOB NOT NULL,
  total           INTEGER NOT NULL,
  created_at      REAL NOT NULL,
  ended_at        REAL,
  error           TEXT,
  worker          TEXT,
  lease_until     REAL
);

CREATE TABLE case_result (
  run_id    TEXT NOT NULL REFERENCES run (id),
  iteration INTEGER NOT NULL,
  number    INTEGER NOT NULL,
  verdict   TEXT NOT NULL,
  body      BLOB NOT NULL,
  PRIMARY KEY (run_id, iteration, number)
) WITHOUT ROWID;
