-- The tests of a command in their order, saved before the first of them starts, so that it is known which did not start.
-- The address of the org is empty for the project's own. The options are those of the first test; those of each test
-- are what differs from them, as JSON. The version changes when the content of a test does. The file is what starting a
-- run of it requires; NULL for deployed definitions. The state is 'due' until the test has a run.
CREATE TABLE suite (
  id         TEXT NOT NULL PRIMARY KEY,
  org_url    TEXT NOT NULL,
  org_name   TEXT NOT NULL,
  created_at REAL NOT NULL,
  options    BLOB NOT NULL
) WITHOUT ROWID;

CREATE INDEX suite_by_age ON suite (created_at, id);

CREATE TABLE suite_test (
  suite   TEXT NOT NULL REFERENCES suite (id) ON DELETE CASCADE,
  place   INTEGER NOT NULL,
  type    TEXT NOT NULL,
  name    TEXT NOT NULL,
  version TEXT NOT NULL,
  file    BLOB,
  options BLOB NOT NULL,
  state   TEXT NOT NULL,
  PRIMARY KEY (suite, place)
) WITHOUT ROWID;

CREATE INDEX due_test ON suite_test (suite) WHERE state = 'due';

-- The place of a run in its suite; 0 for runs that ask again, judge again, or were started otherwise.
ALTER TABLE run ADD COLUMN place INTEGER NOT NULL DEFAULT 0;

ALTER TABLE remote_run ADD COLUMN place INTEGER NOT NULL DEFAULT 0;

DROP INDEX run_by_suite;

CREATE INDEX run_by_suite ON run (suite, place);

CREATE INDEX remote_run_by_suite ON remote_run (suite, place);

DROP VIEW listed_run;

CREATE VIEW listed_run AS
  SELECT CAST('' AS TEXT) AS org_url, CAST('' AS TEXT) AS org_name, id, definition, subject_name AS subject, status,
    CAST(coalesce(started_at, created_at) AS REAL) AS started, ended_at AS ended, total, suite, branch, answers_of, confirms,
    CASE kind WHEN 'file' THEN json_extract(CAST(content AS TEXT), '$.file') ELSE '' END AS file, place,
    tally, verdict, options, user_id
  FROM run
  UNION ALL
  SELECT org_url, org_name, id, definition, subject, status, started_at, ended_at, total, suite, branch, answers_of,
    confirms, '', place, tally, verdict, options, CAST(NULL AS TEXT)
  FROM remote_run
