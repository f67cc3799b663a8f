-- What happens by itself: the scheduler's runs, the health of instances, repairs, the guardian's events, alerts, and the
-- nightly comparison of what was spent.

-- Who may do what only one process does. Whoever does not renew loses it.
CREATE TABLE lease (
    name   {text} NOT NULL PRIMARY KEY,
    holder {text} NOT NULL,
    until  {int}  NOT NULL
);

-- What administrators want of a job; a job without a row is as it is by default.
CREATE TABLE job (
    name       {text} NOT NULL PRIMARY KEY,
    paused     {int}  NOT NULL,
    updated_at {int}  NOT NULL
);

CREATE TABLE job_run (
    id          {serial},
    job_name    {text} NOT NULL,
    -- The instant it was due at; NULL for a run that somebody asked for.
    slot        {int},
    -- running, success, failed or skipped.
    status      {text} NOT NULL,
    duration_ms {int}  NOT NULL DEFAULT 0,
    message     {text} NOT NULL DEFAULT '',
    -- Which process runs it, and until when it must have said so again.
    holder      {text} NOT NULL,
    lease_until {int}  NOT NULL,
    created_at  {int}  NOT NULL
);
CREATE UNIQUE INDEX job_run_slot ON job_run (job_name, slot) WHERE slot IS NOT NULL;
CREATE UNIQUE INDEX job_run_running ON job_run (job_name) WHERE status = 'running';
CREATE INDEX job_run_job ON job_run (job_name, created_at, id);
CREATE INDEX job_run_time ON job_run (created_at, id);

-- What the last looks at an instance said, beside its health_status.
CREATE TABLE instance_health (
    instance_id   {text} NOT NULL PRIMARY KEY REFERENCES instance (id),
    -- The layer that decided: ssh, service, http, rpc, key, or empty.
    layer         {text} NOT NULL DEFAULT '',
    detail        {text} NOT NULL DEFAULT '',
    latency_ms    {int},
    -- Out of memory was found then: only a unit that was started after it counts as healthy.
    memory_out_at {int},
    -- The last automatic restart; it is watched for half an hour.
    restarted_at  {int},
    -- How far the log file was read, and until when the journal.
    log_inode     {int}  NOT NULL DEFAULT 0,
    log_offset    {int}  NOT NULL DEFAULT 0,
    journal_at    {int}  NOT NULL DEFAULT 0
);

-- Every automatic repair, with the proof before and the state after.
CREATE TABLE repair (
    id          {serial},
    -- The rule's word, or auto_recovery.
    rule        {text} NOT NULL,
    instance_id {text} NOT NULL REFERENCES instance (id),
    -- running, success, failed, or alert where nothing may be done by itself.
    status      {text} NOT NULL,
    before      {text} NOT NULL,
    action      {text} NOT NULL,
    after       {text} NOT NULL DEFAULT '',
    task_id     {text},
    took_ms     {int}  NOT NULL DEFAULT 0,
    created_at  {int}  NOT NULL
);
CREATE UNIQUE INDEX repair_running ON repair (instance_id) WHERE status = 'running';
CREATE INDEX repair_instance ON repair (instance_id, created_at);
CREATE INDEX repair_time ON repair (created_at, id);

CREATE TABLE guardian_event (
    id           {serial},
    dimension    {text} NOT NULL,
    target_id    {text} NOT NULL,
    status       {text} NOT NULL,
    problem      {text} NOT NULL,
    action_taken {text} NOT NULL,
    extra        {text} NOT NULL,
    created_at   {int}  NOT NULL
);
CREATE INDEX guardian_event_time ON guardian_event (created_at, id);
CREATE INDEX guardian_event_dimension ON guardian_event (dimension, created_at, id);
CREATE INDEX guardian_event_target ON guardian_event (target_id, created_at, id);

-- How the last run of each dimension went.
CREATE TABLE guardian_check (
    dimension  {text} NOT NULL PRIMARY KEY,
    status     {text} NOT NULL,
    checked_at {int}  NOT NULL
);

CREATE TABLE alert_rule (
    id         {text} NOT NULL PRIMARY KEY,
    enabled    {int}  NOT NULL,
    threshold  {real},
    -- The webhook's URL, sealed: many carry a token. NULL where alerts are only listed.
    channel    {text},
    -- Signs what is delivered, sealed.
    secret     {text},
    updated_at {int}  NOT NULL
);

CREATE TABLE alert (
    id          {text} NOT NULL PRIMARY KEY,
    rule        {text} NOT NULL,
    -- What it is about: an instance, a key, a task, or the platform.
    subject     {text} NOT NULL,
    message     {text} NOT NULL,
    created_at  {int}  NOT NULL,
    acked_at    {int},
    acked_by    {text} NOT NULL DEFAULT '',
    resolved_at {int}
);
CREATE UNIQUE INDEX alert_open ON alert (rule, subject) WHERE resolved_at IS NULL;
CREATE INDEX alert_time ON alert (created_at, id);

-- What the last look at a key said: valid, invalid, and others; empty before.
ALTER TABLE gateway_key ADD COLUMN state {text} NOT NULL DEFAULT '';
-- What our sums, the rows of the log and the gateway's balances said of a day, in quota units.
CREATE TABLE spend_day (
    date       {text} NOT NULL PRIMARY KEY,
    summed     {int}  NOT NULL,
    logged     {int},
    -- How much the gap between what the gateway says was used and what our sums have has grown since the last comparison, and
    -- the gap itself; NULL where the gateway does not say.
    balance    {int},
    used_total {int},
    created_at {int}  NOT NULL
);

-- For listeners of live events that come back, and for retention.
CREATE INDEX server_metric_created ON server_metric (created_at);
CREATE INDEX task_updated ON task (updated_at);
