-- How many results passed, failed, ended in errors and are undecided, as JSON: for runs that are over, if this takes all
-- their results to find out. NULL if it is not known yet.
ALTER TABLE run ADD COLUMN counts TEXT
