-- The layout of the first release. Times are seconds since the epoch. A change of the layout is a new file with the next
-- number; statements end with a semicolon at the end of a line.
CREATE TABLE counter (
  prefix TEXT NOT NULL PRIMARY KEY,
  last   INTEGER NOT NULL
);

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

-- API names ignore case, as in Salesforce.
CREATE TABLE component (
  type        TEXT NOT NULL,
  full_name   TEXT NOT NULL COLLATE NOCASE,
  id          TEXT NOT NULL UNIQUE,
  content     BLOB NOT NULL,
  created_at  REAL NOT NULL,
  modified_at REAL NOT NULL,
  created_by  TEXT NOT NULL,
  modified_by TEXT NOT NULL,
  PRIMARY KEY (type, full_name)
);

-- Deployments and retrieves are queued and executed in order; a job keeps its row from the request to the reply.
CREATE TABLE job (
  id            TEXT NOT NULL PRIMARY KEY,
  kind          TEXT NOT NULL,
  status        TEXT NOT NULL,
  user_id       TEXT NOT NULL,
  user_name     TEXT NOT NULL,
  check_only    INTEGER NOT NULL,
  created_at    REAL NOT NULL,
  started_at    REAL,
  ended_at      REAL,
  place         INTEGER UNIQUE,
  validation    TEXT,
  canceled_by   TEXT,
  canceled_name TEXT,
  worker        TEXT,
  lease_until   REAL,
  options       BLOB NOT NULL,
  request       BLOB,
  reply         BLOB
);

CREATE INDEX unfinished_job ON job (id) WHERE place IS NULL AND reply IS NULL;

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

-- The jobs that a project's commands started in an org, the most recent one last. The contents that a
-- deployment sent are stored as hashes, so that a resumed deployment can update the common state.
CREATE TABLE receipt (
  number  INTEGER PRIMARY KEY,
  project TEXT NOT NULL,
  org_url TEXT NOT NULL,
  kind    TEXT NOT NULL,
  job_id  TEXT NOT NULL,
  kept_at REAL NOT NULL,
  sent    BLOB
);

CREATE INDEX receipt_of_project ON receipt (project, org_url, kind, number);

-- The agents whose version was activated or deactivated; all others are active.
CREATE TABLE agent (
  name        TEXT NOT NULL PRIMARY KEY COLLATE NOCASE,
  is_active   INTEGER NOT NULL,
  modified_at REAL NOT NULL,
  modified_by TEXT NOT NULL
) WITHOUT ROWID;

-- The kind says what the content is: ContentKind. A run starts when its first worker does. The runs of one command share
-- a suite; the branch is that of the project when the run was created. A run may judge the answers of an earlier run
-- again, here or in another org, or ask its suspect cases again (confirms). The tally has the counts of a run that is
-- over, as JSON, and the verdict is the one on it, so that lists need not read its results.
CREATE TABLE run (
  id              TEXT NOT NULL PRIMARY KEY,
  definition      TEXT NOT NULL,
  kind            TEXT NOT NULL,
  content         BLOB NOT NULL,
  subject_name    TEXT NOT NULL,
  subject_version TEXT,
  status          TEXT NOT NULL,
  options         BLOB NOT NULL,
  total           INTEGER NOT NULL,
  user_id         TEXT NOT NULL,
  suite           TEXT NOT NULL,
  branch          TEXT NOT NULL,
  answers_of      TEXT,
  confirms        TEXT NOT NULL,
  created_at      REAL NOT NULL,
  started_at      REAL,
  ended_at        REAL,
  error           TEXT,
  worker          TEXT,
  lease_until     REAL,
  tally           TEXT,
  verdict         TEXT
);

-- A server polls for unfinished runs.
CREATE INDEX unfinished_run ON run (created_at) WHERE status IN ('NEW', 'IN_PROGRESS');

CREATE INDEX run_by_suite ON run (suite);

CREATE INDEX run_by_start ON run (CAST(coalesce(started_at, created_at) AS REAL), id);

CREATE TABLE case_result (
  run_id    TEXT NOT NULL REFERENCES run (id),
  iteration INTEGER NOT NULL,
  number    INTEGER NOT NULL,
  verdict   TEXT NOT NULL,
  body      BLOB NOT NULL,
  PRIMARY KEY (run_id, iteration, number)
) WITHOUT ROWID;

-- The viewer lists results by verdict; all columns that it orders by are in the index.
CREATE INDEX case_by_verdict ON case_result (run_id, verdict, number, iteration);

-- Runs in other orgs that the project's commands started or queried: the last known results object in the body. The jobs
-- are the org's runs, one for each iteration. The content is the definition that the org had when the results were
-- checked, as it was retrieved; NULL if it was not.
CREATE TABLE remote_run (
  org_url    TEXT NOT NULL,
  id         TEXT NOT NULL,
  org_name   TEXT NOT NULL,
  definition TEXT NOT NULL,
  content    BLOB,
  subject    TEXT NOT NULL,
  status     TEXT NOT NULL,
  options    BLOB NOT NULL,
  total      INTEGER NOT NULL,
  suite      TEXT NOT NULL,
  branch     TEXT NOT NULL,
  answers_of TEXT,
  confirms   TEXT NOT NULL,
  started_at REAL NOT NULL,
  ended_at   REAL,
  tally      TEXT NOT NULL,
  verdict    TEXT,
  jobs       BLOB NOT NULL,
  body       BLOB NOT NULL,
  PRIMARY KEY (org_url, id)
) WITHOUT ROWID;

CREATE INDEX remote_run_by_id ON remote_run (id);

CREATE INDEX remote_run_by_start ON remote_run (started_at, id);

-- The runs of all orgs. Only runs of files here have a file, and only runs here have a user. SQLite reads both tables by
-- their indexes only if the columns of both have the same type.
CREATE VIEW listed_run AS
  SELECT CAST('' AS TEXT) AS org_url, CAST('' AS TEXT) AS org_name, id, definition, subject_name AS subject, status,
    CAST(coalesce(started_at, created_at) AS REAL) AS started, ended_at AS ended, total, suite, branch, answers_of, confirms,
    CASE kind WHEN 'file' THEN json_extract(CAST(content AS TEXT), '$.file') ELSE '' END AS file,
    tally, verdict, options, user_id
  FROM run
  UNION ALL
  SELECT org_url, org_name, id, definition, subject, status, started_at, ended_at, total, suite, branch, answers_of,
    confirms, '', tally, verdict, options, CAST(NULL AS TEXT)
  FROM remote_run;

-- Numbers of a run that take long to compute, as JSON; `stamp` changes when the run gets other results.
CREATE TABLE run_digest (
  org_url TEXT NOT NULL,
  run_id  TEXT NOT NULL,
  stamp   TEXT NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (org_url, run_id)
) WITHOUT ROWID;

-- People's judgements of results; a person has one for each result. The turn is 0 in a case of one turn. What the verdict
-- of a result should be that was not decided: 1 pass, 0 fail; NULL for decided results.
CREATE TABLE mark (
  org_url     TEXT NOT NULL,
  run_id      TEXT NOT NULL,
  iteration   INTEGER NOT NULL,
  number      INTEGER NOT NULL,
  name        TEXT NOT NULL,
  turn        INTEGER NOT NULL,
  user_id     TEXT NOT NULL,
  user_name   TEXT NOT NULL,
  is_right    INTEGER NOT NULL,
  should_pass INTEGER,
  note        TEXT NOT NULL,
  marked_at   REAL NOT NULL,
  PRIMARY KEY (org_url, run_id, iteration, number, name, turn, user_id)
) WITHOUT ROWID;

-- Replies of language models that rated answers, as JSON; the key is a hash of everything they depend on.
CREATE TABLE rating (
  key        TEXT NOT NULL PRIMARY KEY,
  body       TEXT NOT NULL,
  created_at REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX rating_by_age ON rating (created_at);

-- Workers in several processes share the rate limit of an agent. The times move with a clock that is set back.
CREATE TABLE pace (
  agent      TEXT NOT NULL PRIMARY KEY,
  next_slot  REAL NOT NULL,
  not_before REAL NOT NULL,
  written_at REAL NOT NULL
) WITHOUT ROWID;

-- The processes of a served org share the concurrency of an agent: what the worker of each run uses and still wants.
CREATE TABLE place (
  run_id TEXT NOT NULL PRIMARY KEY,
  worker TEXT NOT NULL,
  size   INTEGER NOT NULL,
  taken  INTEGER NOT NULL,
  wanted INTEGER NOT NULL,
  seen   REAL NOT NULL
) WITHOUT ROWID
