-- What is owed to an instance on its server, because a task wrote or stopped something there: noted before, taken off when it has
-- come to its end. A worker may go away in between; whoever comes next finishes it.
CREATE TABLE debt (
    instance_id {text} NOT NULL PRIMARY KEY REFERENCES instance (id),
    -- reload, restart or start; empty where nothing is.
    owed        {text} NOT NULL,
    -- How large the instance's log was before its configuration was written: what came after tells whether it was taken over.
    log_size    {int}  NOT NULL,
    -- What was changed, and does not stand in the audit log yet. Secrets are masked.
    told        {text} NOT NULL
);
