-- oldest: 11
-- Whether every package of the OpenClaw that a server was prepared with was checked against a lockfile. Older ones were not.
ALTER TABLE server ADD COLUMN openclaw_pinned {int} NOT NULL DEFAULT 0;
