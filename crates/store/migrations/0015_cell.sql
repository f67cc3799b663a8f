-- oldest: 11
-- How the program of an instance is confined on its server, and what it takes there. No row: nobody has looked yet.
CREATE TABLE cell (
    instance_id  {text} PRIMARY KEY NOT NULL REFERENCES instance (id),
    -- unknown: nobody has looked yet. foreign: its unit is not ours. unconfined: it is, without a cell. confined: it has its cell.
    state        {text} NOT NULL DEFAULT 'unknown',
    -- What `systemd-analyze security` says of its unit, in tenths: 0 is the safest, 100 the least safe.
    score        {int},
    -- Names of directives that its server cannot do, and of those that it takes without doing them; commas between them.
    left_out     {text} NOT NULL DEFAULT '',
    not_enforced {text} NOT NULL DEFAULT '',
    -- What its cell leaves open by name.
    openings     {text} NOT NULL DEFAULT '',
    home_bytes   {int},
    measured_at  {int}
);

-- What an instance, a profession and a server say about limits. A value that is not set is left to the next of them.
CREATE TABLE cell_limit (
    subject     {text} NOT NULL,
    subject_id  {text} NOT NULL,
    memory_mib  {int},
    cpu_percent {int},
    tasks       {int},
    disk_mib    {int},
    PRIMARY KEY (subject, subject_id)
);
