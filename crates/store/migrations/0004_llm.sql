-- The LLM gateway: models, sub keys, the request log with its sums, what is granted of quotas, and chat messages.

CREATE TABLE model (
    id         {text} NOT NULL PRIMARY KEY,
    -- The kind of its provider: anthropic, openai, google or echo.
    kind       {text} NOT NULL,
    provider   {text} NOT NULL,
    -- Billionths of a dollar per 1,000 tokens.
    price      {int}  NOT NULL,
    enabled    {int}  NOT NULL DEFAULT 1,
    -- Its place in the fallback chain; NULL for a model that is not in it.
    chain      {int},
    sort_order {int}  NOT NULL DEFAULT 0,
    created_at {int}  NOT NULL
);

-- A sub key of the LLM gateway. Its name is the token name in the request log: an instance's id, or a name of its own.
CREATE TABLE gateway_key (
    id              {text} NOT NULL PRIMARY KEY,
    instance_id     {text} REFERENCES instance (id),
    name            {text} NOT NULL,
    -- The token's id at a foreign gateway.
    gateway_id      {text} NOT NULL DEFAULT '',
    secret          {text} NOT NULL,
    -- Equal keys have equal hashes; the key itself is sealed.
    secret_hash     {text} NOT NULL,
    -- What an administrator wants: active or disabled.
    status          {text} NOT NULL,
    -- Why it is off whatever the administrator wants: 1 for each that holds.
    user_revoked    {int}  NOT NULL DEFAULT 0,
    quota_spent     {int}  NOT NULL DEFAULT 0,
    -- Quota units; NULL means no limit.
    quota           {int},
    -- What the gateway says was used, and what the log sums up to: a difference is drift.
    used_quota      {int}  NOT NULL DEFAULT 0,
    logged_quota    {int}  NOT NULL DEFAULT 0,
    -- What keys of this name that are gone had used, since the log goes by the name.
    carried_quota   {int}  NOT NULL DEFAULT 0,
    -- 1 until the gateway agrees with this record.
    dirty           {int}  NOT NULL DEFAULT 0,
    -- 1 when the next agreement must change the key itself.
    rotate          {int}  NOT NULL DEFAULT 0,
    last_checked_at {int},
    created_at      {int}  NOT NULL,
    updated_at      {int}  NOT NULL,
    deleted_at      {int}
);
CREATE UNIQUE INDEX gateway_key_name ON gateway_key (name) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX gateway_key_secret ON gateway_key (secret_hash) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX gateway_key_instance ON gateway_key (instance_id) WHERE deleted_at IS NULL AND instance_id IS NOT NULL;

-- Every request of the gateway: written by the embedded one, copied from the log of a foreign one. Kept for the
-- retention period; the sums below are kept for ever.
CREATE TABLE request_log (
    id                {serial},
    request_id        {text} NOT NULL,
    token_name        {text} NOT NULL,
    model             {text} NOT NULL,
    provider          {text} NOT NULL,
    -- 2 is a success, 6 a refund, anything else an error.
    type              {int}  NOT NULL,
    is_stream         {int}  NOT NULL,
    prompt_tokens     {int}  NOT NULL,
    completion_tokens {int}  NOT NULL,
    quota             {int}  NOT NULL,
    duration_ms       {int}  NOT NULL,
    error_message     {text} NOT NULL,
    -- 1 when the provider gave no counts and ours stand in.
    estimated         {int}  NOT NULL DEFAULT 0,
    created_at        {int}  NOT NULL
);
CREATE INDEX request_log_token ON request_log (token_name, created_at, id);
CREATE INDEX request_log_time ON request_log (created_at, id);
CREATE INDEX request_log_error ON request_log (created_at, id) WHERE type <> 2;

-- Sums of request_log by quarters of an hour: every zone's offset is a multiple of it.
CREATE TABLE usage_slot (
    token_name        {text} NOT NULL,
    slot              {int}  NOT NULL,
    model             {text} NOT NULL,
    provider          {text} NOT NULL,
    requests          {int}  NOT NULL,
    errors            {int}  NOT NULL,
    prompt_tokens     {int}  NOT NULL,
    completion_tokens {int}  NOT NULL,
    quota             {int}  NOT NULL,
    PRIMARY KEY (token_name, slot, model, provider)
);

-- The same by local days of the configured zone, made anew when the zone changes.
CREATE TABLE usage_daily (
    date              {text} NOT NULL,
    token_name        {text} NOT NULL,
    model             {text} NOT NULL,
    provider          {text} NOT NULL,
    requests          {int}  NOT NULL,
    errors            {int}  NOT NULL,
    prompt_tokens     {int}  NOT NULL,
    completion_tokens {int}  NOT NULL,
    quota             {int}  NOT NULL,
    PRIMARY KEY (date, token_name, model, provider)
);
CREATE INDEX usage_daily_token ON usage_daily (token_name, date);

-- How far the log of a foreign gateway was read.
CREATE TABLE usage_source (
    name       {text} NOT NULL PRIMARY KEY,
    -- What the kind's reader needs to go on: an id, or a time and an id.
    position   {text} NOT NULL,
    updated_at {int}  NOT NULL
);

-- Ids that were missing when their neighbours were read: a row can become visible late.
CREATE TABLE usage_gap (
    source     {text} NOT NULL,
    first_id   {int}  NOT NULL,
    last_id    {int}  NOT NULL,
    created_at {int}  NOT NULL,
    PRIMARY KEY (source, first_id)
);

-- How much of a segment file of the embedded gateway's log is in request_log.
CREATE TABLE log_segment (
    id         {text} NOT NULL PRIMARY KEY,
    replica    {text} NOT NULL,
    loaded     {int}  NOT NULL,
    updated_at {int}  NOT NULL
);

-- What one process was granted of a quota and has not yet written into the log.
CREATE TABLE quota_grant (
    -- user:<id>:<date> in tokens, or key:<id> in quota units.
    subject    {text} NOT NULL,
    replica    {text} NOT NULL,
    granted    {int}  NOT NULL,
    updated_at {int}  NOT NULL,
    PRIMARY KEY (subject, replica)
);

CREATE TABLE chat_message (
    id          {text} NOT NULL PRIMARY KEY,
    user_id     {text} NOT NULL REFERENCES users (id),
    instance_id {text} NOT NULL REFERENCES instance (id),
    role        {text} NOT NULL,
    content     {text} NOT NULL,
    tokens      {int}  NOT NULL,
    session_key {text} NOT NULL DEFAULT '',
    -- The client's own id of a saved message: a repeat is harmless.
    client_id   {text},
    -- 1 for a message that POST /me/chat stored and that no save has repeated yet.
    unconfirmed {int}  NOT NULL DEFAULT 0,
    created_at  {int}  NOT NULL
);
CREATE UNIQUE INDEX chat_message_client ON chat_message (user_id, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX chat_message_instance ON chat_message (instance_id, created_at, id);
CREATE INDEX chat_message_user ON chat_message (user_id, created_at, id);
