-- Users and their access tokens: a public id, by which a token is found, and the hash of the token.
CREATE TABLE org_user (
  id         TEXT NOT NULL PRIMARY KEY,
  username   TEXT NOT NULL UNIQUE COLLATE NOCASE,
  name       TEXT NOT NULL,
  is_admin   INTEGER NOT NULL,
  created_at REAL NOT NULL
);

-- The first user of every org; the next one has number 2.
INSERT INTO org_user VALUES ('005000000000001AAA', 'admin@evalmeta.local', 'Local Admin', 1, 0);

INSERT INTO counter VALUES ('005', 1);

CREATE TABLE access_token (
  id         TEXT NOT NULL PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES org_user (id),
  sha256     BLOB NOT NULL,
  created_at REAL NOT NULL,
  expires_at REAL NOT NULL,
  used_at    REAL,
  revoked_at REAL
);

-- A server polls for unfinished runs.
CREATE INDEX unfinished_run ON run (created_at) WHERE status IN ('NEW', 'IN_PROGRESS')
