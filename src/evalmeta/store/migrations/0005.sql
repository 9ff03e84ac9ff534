-- The jobs that a project's commands began in an org, the most recent one last. What a deployment
-- sends is kept as hashes, so that whoever resumes it knows what both sides have then.
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
