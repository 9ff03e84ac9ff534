-- The viewer lists results by verdict; all columns that it orders by are in the index.
CREATE INDEX case_by_verdict ON case_result (run_id, verdict, number, iteration);

-- The runs of one command share a suite. The branch and the commit are those of the project when the run started.
ALTER TABLE run ADD COLUMN suite TEXT;

ALTER TABLE run ADD COLUMN branch TEXT;

ALTER TABLE remote_run ADD COLUMN suite TEXT;

ALTER TABLE remote_run ADD COLUMN branch TEXT;

CREATE INDEX run_by_suite ON run (suite) WHERE suite IS NOT NULL;

-- Numbers of a run that take long to compute, as JSON; `stamp` changes when the run gets other results.
CREATE TABLE run_digest (
  org_url TEXT NOT NULL,
  run_id  TEXT NOT NULL,
  stamp   TEXT NOT NULL,
  body    TEXT NOT NULL,
  PRIMARY KEY (org_url, run_id)
) WITHOUT ROWID;

-- People's judgements of results; a person has one for each result. The turn is 0 in a case of one turn.
CREATE TABLE mark (
  org_url   TEXT NOT NULL,
  run_id    TEXT NOT NULL,
  iteration INTEGER NOT NULL,
  number    INTEGER NOT NULL,
  name      TEXT NOT NULL,
  turn      INTEGER NOT NULL,
  user_id   TEXT NOT NULL,
  user_name TEXT NOT NULL,
  is_right  INTEGER NOT NULL,
  note      TEXT NOT NULL,
  marked_at REAL NOT NULL,
  PRIMARY KEY (org_url, run_id, iteration, number, name, turn, user_id)
) WITHOUT ROWID;

-- The runs of all orgs; those of other orgs know the counts of their results.
CREATE VIEW listed_run AS
  SELECT '' AS org_url, '' AS org_name, id, definition, subject_name AS subject, status,
    coalesce(started_at, created_at) AS started, ended_at AS ended, total, coalesce(suite, '') AS suite,
    coalesce(branch, '') AS branch, answers_of, user_id, NULL AS passed, NULL AS failed, NULL AS errors,
    NULL AS undecided, options AS body
  FROM run
  UNION ALL
  SELECT org_url, org_name, id, definition, '', status, started_at, ended_at, total, coalesce(suite, ''),
    coalesce(branch, ''), NULL, NULL, passed, failed, errors, undecided, body
  FROM remote_run
