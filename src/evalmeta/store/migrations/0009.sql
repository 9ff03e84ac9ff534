-- A run may judge the answers of an earlier one again, instead of asking an agent.
ALTER TABLE run ADD COLUMN answers_of TEXT REFERENCES run (id)
