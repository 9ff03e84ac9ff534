-- Who calls, and the tokens they call with: a public id to find one by, and the hash of the whole.
CREATE TABLE org_user (
  id         TEXT NOT NULL PRIMARY KEY,
  username   TEXT NOT NULL UNIQUE COLLATE NOCASE,
  name       TEXT NOT NULL,
  is_admin   INTEGER NOT NULL,
  created_at REAL NOT NULL
);

-- The user whom an org has from the beginning; the next one is number 2.
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

-- A server looks for runs to work on again and again.
CREATE INDEX unfinished_run ON run (created_at) WHERE status IN ('NEW', 'IN_PROGRESS')
