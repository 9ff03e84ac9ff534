-- Runs in other orgs that the project's commands started or queried: the counts, for lists, and the
-- last known results object. The jobs are the org's runs, one for each iteration.
CREATE TABLE remote_run (
  org_url    TEXT NOT NULL,
  id         TEXT NOT NULL,
  org_name   TEXT NOT NULL,
  definition TEXT NOT NULL,
  status     TEXT NOT NULL,
  started_at REAL NOT NULL,
  ended_at   REAL,
  total      INTEGER NOT NULL,
  passed     INTEGER NOT NULL,
  failed     INTEGER NOT NULL,
  errors     INTEGER NOT NULL,
  undecided  INTEGER NOT NULL,
  jobs       BLOB NOT NULL,
  body       BLOB NOT NULL,
  PRIMARY KEY (org_url, id)
) WITHOUT ROWID;

CREATE INDEX remote_run_by_id ON remote_run (id)
