-- The name that the file of a test gives it, such as `name: Orders`; empty if it has none beside the name of the definition.
ALTER TABLE run ADD COLUMN title TEXT COLLATE "C" NOT NULL DEFAULT '';

-- Whether the results have the tags of their cases; those of runs from before do not say which ones they had.
ALTER TABLE run ADD COLUMN keeps_tags INTEGER NOT NULL DEFAULT 0;

DROP VIEW run_use;

DROP VIEW listed_run;

CREATE VIEW listed_run AS
  SELECT CAST('' AS TEXT) COLLATE "C" AS org_url, CAST('' AS TEXT) COLLATE "C" AS org_name, id, definition,
    subject_name AS subject, status, coalesce(started_at, created_at) AS started, ended_at AS ended, total, suite, branch,
    answers_of, confirms,
    CASE kind WHEN 'file' THEN json_extract(convert_from(content, 'UTF8'), '$.file') ELSE '' END COLLATE "C" AS file,
    title, place, tally, verdict, options, user_id
  FROM run
  UNION ALL
  SELECT org_url, org_name, id, definition, subject, status, started_at, ended_at, total, suite, branch, answers_of,
    confirms, CAST('' AS TEXT) COLLATE "C", CAST('' AS TEXT) COLLATE "C", place, tally, verdict, options,
    CAST(NULL AS TEXT) COLLATE "C"
  FROM remote_run;

CREATE VIEW run_use AS
  SELECT org_url, id,
    CASE
      WHEN status IN ('NEW', 'IN_PROGRESS') THEN 'in progress'
      WHEN EXISTS (SELECT 1 FROM suite_test WHERE suite_test.suite = listed_run.suite AND state = 'due')
        THEN 'in a suite that is not complete'
      WHEN EXISTS (SELECT 1 FROM mark WHERE mark.run_id = listed_run.id AND mark.org_url = listed_run.org_url)
        THEN 'judged by people'
      WHEN EXISTS (SELECT 1 FROM used_run WHERE used_run.run_id = listed_run.id) THEN 'in a baseline'
      WHEN EXISTS (SELECT 1 FROM run AS later WHERE later.answers_of = listed_run.id) THEN 'judged again by a later run'
      ELSE ''
    END AS use
  FROM listed_run
