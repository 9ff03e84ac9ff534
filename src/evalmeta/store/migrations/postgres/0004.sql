-- The search over all runs, which is made again from the results if it is lost. Which runs it has, and up to which result;
-- the stamp changes when a run gets other results. SQLite keeps it in a file of its own.
CREATE TABLE searched_run (
  number     BIGINT NOT NULL PRIMARY KEY,
  org_url    TEXT COLLATE "C" NOT NULL,
  run_id     TEXT COLLATE "C" NOT NULL,
  stamp      TEXT COLLATE "C" NOT NULL,
  iteration  BIGINT NOT NULL,
  last_case  BIGINT NOT NULL,
  is_whole   BIGINT NOT NULL,
  UNIQUE (org_url, run_id)
);

CREATE TABLE searched_text (
  place BIGINT NOT NULL PRIMARY KEY,
  words TSVECTOR NOT NULL
);

CREATE INDEX searched_text_by_word ON searched_text USING gin (words)
