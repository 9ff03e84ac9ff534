-- The contents of tests, once each: most runs of a test have the same. That of a run of a file stays with the run: it only
-- names the file.
CREATE TABLE content (
  sha256 BLOB NOT NULL PRIMARY KEY,
  data   BLOB NOT NULL
);

ALTER TABLE run ADD COLUMN content_sha256 BLOB REFERENCES content (sha256);

INSERT OR IGNORE INTO content SELECT sha256(content), content FROM run WHERE kind <> 'file';

UPDATE run SET content_sha256 = sha256(content), content = x'' WHERE kind <> 'file';

CREATE INDEX run_by_content ON run (content_sha256) WHERE content_sha256 NOT NULL;

ALTER TABLE remote_run ADD COLUMN content_sha256 BLOB REFERENCES content (sha256);

INSERT OR IGNORE INTO content SELECT sha256(content), content FROM remote_run WHERE content NOT NULL;

UPDATE remote_run SET content_sha256 = sha256(content), content = NULL WHERE content NOT NULL;

CREATE INDEX remote_run_by_content ON remote_run (content_sha256) WHERE content_sha256 NOT NULL;

-- The runs from which the tests of a baseline were saved; the baseline is the path of its file, relative to the project.
CREATE TABLE used_run (
  baseline TEXT NOT NULL,
  test     TEXT NOT NULL,
  run_id   TEXT NOT NULL,
  PRIMARY KEY (baseline, test, run_id)
) WITHOUT ROWID;

CREATE INDEX used_run_by_id ON used_run (run_id);

-- Why a run stays even if it is old; empty if nothing needs it.
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
