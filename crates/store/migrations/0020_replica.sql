-- oldest: 11
-- The processes that serve this database, and what they must have in common. A row whose lease is over is of a process that is gone.
CREATE TABLE replica (
    name        {text} NOT NULL PRIMARY KEY,
    -- The zone in which days begin.
    zone        {text} NOT NULL,
    version     {text} NOT NULL,
    started_at  {int}  NOT NULL,
    lease_until {int}  NOT NULL
);
