-- Runs of one command wait for each other; a run starts when its first worker does.
ALTER TABLE run ADD COLUMN started_at REAL
