-- oldest: 11
-- How far what our records want of an instance has come on its server.
CREATE TABLE reconcile (
    instance_id   {text} NOT NULL PRIMARY KEY REFERENCES instance (id),
    -- Raised by every request that changes what our records want.
    generation    {int}  NOT NULL DEFAULT 0,
    -- The generation that is on the server as a whole.
    applied       {int}  NOT NULL DEFAULT 0,
    -- The step that was begun and is not finished: reload, restart or start; empty if none is.
    pending       {text} NOT NULL DEFAULT '',
    -- How large the instance's log was before its configuration was written: what came after shows whether it was reloaded.
    log_size      {int}  NOT NULL DEFAULT 0,
    -- The hash of the configuration before it was written: a file that still has it was not written.
    previous      {text} NOT NULL DEFAULT '',
    -- What was changed and is not in the audit log yet. Secrets are masked.
    unrecorded    {text} NOT NULL DEFAULT '',
    -- The upgrade or change of the cell that has stopped the instance and is not finished: a task.
    operation     {text},
    -- How often in a row the same was tried and failed, and what that was about: it is tried again when that changes.
    failures      {int}  NOT NULL DEFAULT 0,
    failed_state  {text} NOT NULL DEFAULT '',
    error         {text} NOT NULL DEFAULT '',
    -- What the last comparison found to differ, and since when. Secrets are masked.
    differs       {text} NOT NULL DEFAULT '',
    differs_since {int},
    compared_at   {int},
    -- The release of the platform that compared or wrote it last: the first comparison of a release only reports.
    release       {text} NOT NULL DEFAULT '',
    -- Until when the platform leaves the instance alone, why, and who asked for it.
    held_until    {int},
    held_reason   {text} NOT NULL DEFAULT '',
    held_by       {text} NOT NULL DEFAULT ''
);

-- What was begun is a generation behind, so that the next comparison finishes it. The table of debts stays for processes of an older
-- release that run beside this one; `migrate::REMOVALS` drops it.
INSERT INTO reconcile (instance_id, generation, applied, pending, log_size, unrecorded, operation)
SELECT d.instance_id, 1, CASE WHEN d.owed = '' AND d.told = '' THEN 1 ELSE 0 END, d.owed, d.log_size, d.told,
    (SELECT MIN(t.id) FROM task t WHERE t.instance_id = d.instance_id AND t.type IN ('upgrade_instance', 'confine_instance')
     AND t.status IN ('pending', 'processing', 'failed') AND d.owed IN ('restart', 'start'))
FROM debt d;
UPDATE debt SET owed = '', told = '';
