-- The signature that only the user who created a token can make, and only for the folder of this file.
ALTER TABLE access_token ADD COLUMN signature BLOB
