-- Sessions of browsers with the viewer: signed hashes of their cookies. One that an access token opened ends with the token.
CREATE TABLE view_session (
  signature  BLOB NOT NULL PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES org_user (id),
  token_id   TEXT REFERENCES access_token (id),
  created_at REAL NOT NULL,
  expires_at REAL NOT NULL
);

-- Pages that follow runs ask twice a second which ones have ended; the index alone answers.
CREATE INDEX run_by_user ON run (user_id, ended_at)
