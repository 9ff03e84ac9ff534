-- The definition that the org had when the results of a run were checked, as it was retrieved; NULL if it was not.
ALTER TABLE remote_run ADD COLUMN content BLOB;

-- A run may also judge the answers of a run of another org again, so it no longer refers to a row of its own table.
DROP VIEW listed_run;
ALTER TABLE run RENAME COLUMN answers_of TO own_answers_of;
ALTER TABLE run ADD COLUMN answers_of TEXT;
UPDATE run SET answers_of = own_answers_of, own_answers_of = NULL WHERE own_answers_of IS NOT NULL;
ALTER TABLE run DROP COLUMN own_answers_of;

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
