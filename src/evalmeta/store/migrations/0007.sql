-- The user of a run, and the users who created and last changed a component; by default the admin.
ALTER TABLE run ADD COLUMN user_id TEXT NOT NULL DEFAULT '005000000000001AAA';

ALTER TABLE component ADD COLUMN created_by TEXT NOT NULL DEFAULT '005000000000001AAA';

ALTER TABLE component ADD COLUMN modified_by TEXT NOT NULL DEFAULT '005000000000001AAA'
