-- What people say that the verdict of a result should be which was not decided: 1 pass, 0 fail; null for decided results.
ALTER TABLE mark ADD COLUMN should_pass INTEGER
