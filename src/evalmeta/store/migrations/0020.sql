-- The counts of a run that is over, as JSON, and the verdict on it, so that lists need not read its results.
-- Runs of other orgs have them in any state. Runs of earlier layouts get them from the first list that shows them.
DROP VIEW listed_run;
ALTER TABLE run ADD COLUMN tally TEXT;
ALTER TABLE run ADD COLUMN verdict TEXT;
ALTER TABLE run DROP COLUMN counts;
ALTER TABLE remote_run ADD COLUMN tally TEXT;
ALTER TABLE remote_run ADD COLUMN verdict TEXT;
ALTER TABLE remote_run DROP COLUMN passed;
ALTER TABLE remote_run DROP COLUMN failed;
ALTER TABLE remote_run DROP COLUMN errors;
ALTER TABLE remote_run DROP COLUMN undecided;

CREATE VIEW listed_run AS
  SELECT '' AS org_url, '' AS org_name, id, definition, subject_name AS subject, status,
    coalesce(started_at, created_at) AS started, ended_at AS ended, total, coalesce(suite, '') AS suite,
    coalesce(branch, '') AS branch, answers_of, user_id, tally, verdict, options AS body
  FROM run
  UNION ALL
  SELECT org_url, org_name, id, definition, '', status, started_at, ended_at, total, coalesce(suite, ''),
    coalesce(branch, ''), NULL, NULL, tally, verdict, body
  FROM remote_run
