-- When a run of a job and a repair changed last: a listener of live events who comes back is told of their ends too.
ALTER TABLE job_run ADD COLUMN updated_at {int} NOT NULL DEFAULT 0;
UPDATE job_run SET updated_at = created_at;
CREATE INDEX job_run_updated ON job_run (updated_at);

ALTER TABLE repair ADD COLUMN updated_at {int} NOT NULL DEFAULT 0;
UPDATE repair SET updated_at = created_at;
CREATE INDEX repair_updated ON repair (updated_at);

-- What each check of an instance said, for as long as the console shows it.
CREATE TABLE heartbeat (
    id          {serial},
    instance_id {text} NOT NULL REFERENCES instance (id),
    -- The state that followed from it.
    status      {text} NOT NULL,
    -- The layer that decided, as in instance_health.
    layer       {text} NOT NULL,
    latency_ms  {int},
    created_at  {int}  NOT NULL
);
CREATE INDEX heartbeat_instance ON heartbeat (instance_id, created_at, id);
