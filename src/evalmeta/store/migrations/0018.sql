-- When the times of a pace were written: they move with a clock that is set back.
ALTER TABLE pace ADD COLUMN written_at REAL NOT NULL DEFAULT 0
