-- The common state of a project and an org after the last deploy or retrieve. The project is identified
-- by its path relative to the state folder, which stays the same if both are moved.
CREATE TABLE synced (
  project   TEXT NOT NULL,
  org_url   TEXT NOT NULL,
  type      TEXT NOT NULL,
  full_name TEXT NOT NULL COLLATE NOCASE,
  sha256    BLOB NOT NULL,
  modified  TEXT NOT NULL,
  PRIMARY KEY (project, org_url, type, full_name)
) WITHOUT ROWID;
