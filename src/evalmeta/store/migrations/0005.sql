-- The jobs that a project's commands started in an org, the most recent one last. The contents that a
-- deployment sent are stored as hashes, so that a resumed deployment can update the common state.
CREATE TABLE receipt (
  number   INTEGER PRIMARY KEY,
  project  TEXT NOT NULL,
  org_url  TEXT NOT NULL,
  kind     TEXT NOT NULL,
  job_id   TEXT NOT NULL,
  kept_at  REAL NOT NULL,
  sent     BLOB
);

CREATE INDEX receipt_of_project ON receipt (project, org_url, kind, number)
