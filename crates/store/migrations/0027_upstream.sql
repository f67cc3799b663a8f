-- oldest: 11
-- Requests that we forwarded to a foreign gateway and saw answered, and that are not in its log yet. They count against quotas.
CREATE TABLE unlogged_request (
    id                {text} NOT NULL PRIMARY KEY,
    -- The gateway's own id, where its answer said it.
    request_id        {text} NOT NULL DEFAULT '',
    token_name        {text} NOT NULL,
    -- Whose daily quota it counts against; NULL for the platform's own.
    user_id           {text},
    prompt_tokens     {int}  NOT NULL,
    completion_tokens {int}  NOT NULL,
    -- 1 when the answer gave no counts and ours stand in.
    estimated         {int}  NOT NULL DEFAULT 0,
    began_at          {int}  NOT NULL,
    answered_at       {int}  NOT NULL
);
CREATE INDEX unlogged_request_token ON unlogged_request (token_name);
CREATE INDEX unlogged_request_user ON unlogged_request (user_id, answered_at);
CREATE INDEX unlogged_request_time ON unlogged_request (answered_at);

-- What was last found out about a foreign gateway, for every process to read: whether its log says what it should
-- (log), and whether it takes the management token (admin_token).
CREATE TABLE gateway_state (
    name       {text} NOT NULL PRIMARY KEY,
    -- Empty while all is well.
    problem    {text} NOT NULL DEFAULT '',
    -- Since when it is so.
    since      {int}  NOT NULL,
    checked_at {int}  NOT NULL
);

-- When rows were last read from a foreign log.
ALTER TABLE usage_source ADD COLUMN moved_at {int} NOT NULL DEFAULT 0;

-- Off because the gateway's log says nothing, so that the quota of its user cannot be counted.
ALTER TABLE gateway_key ADD COLUMN log_silent {int} NOT NULL DEFAULT 0;
-- Why the gateway has not followed the last change yet.
ALTER TABLE gateway_key ADD COLUMN problem {text} NOT NULL DEFAULT '';
-- By how much the gateway's count and the log stayed apart when they were compared; NULL where they could not be.
ALTER TABLE gateway_key ADD COLUMN drift {int};

-- The exact cost less the units in `quota`, in billionths of a dollar: some gateways charge fractions of a unit. Sums of both are
-- rounded once.
ALTER TABLE request_log ADD COLUMN quota_rest {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_slot ADD COLUMN quota_rest {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN quota_rest {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_total ADD COLUMN quota_rest {int} NOT NULL DEFAULT 0;
ALTER TABLE gateway_key ADD COLUMN logged_rest {int} NOT NULL DEFAULT 0;

-- The gateway's own count is taken from another place now: the first comparison with it has nothing to compare with.
UPDATE spend_day SET used_total = NULL;
