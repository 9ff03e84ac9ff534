-- What the answers and judgements of a run have cost so far, in picodollars; only kept for runs with a cost limit.
ALTER TABLE run ADD COLUMN spent INTEGER NOT NULL DEFAULT 0
