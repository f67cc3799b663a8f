-- oldest: 11
-- What the cell in an instance's unit leaves open, as it was written last: beside what it was asked to leave open, which the unit follows
-- by a task that may fail.
ALTER TABLE cell ADD COLUMN openings_written {text} NOT NULL DEFAULT '';
-- The SHA-256 of the unit as it was written last; empty where no release wrote it down.
ALTER TABLE cell ADD COLUMN unit_hash {text} NOT NULL DEFAULT '';
UPDATE cell SET openings_written = openings WHERE state = 'confined';
