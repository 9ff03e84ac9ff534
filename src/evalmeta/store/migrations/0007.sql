-- Whose a run is, and who made a component and changed it last. What was there before is the admin's.
ALTER TABLE run ADD COLUMN user_id TEXT NOT NULL DEFAULT '005000000000001AAA';

ALTER TABLE component ADD COLUMN created_by TEXT NOT NULL DEFAULT '005000000000001AAA';

ALTER TABLE component ADD COLUMN modified_by TEXT NOT NULL DEFAULT '005000000000001AAA'
