-- oldest: 11
-- The model providers that the embedded gateway asks, beside those that the configuration names.
CREATE TABLE provider (
    id                 {text} NOT NULL PRIMARY KEY,
    -- What models name.
    name               {text} NOT NULL,
    -- anthropic, openai, google, ollama or compatible.
    kind               {text} NOT NULL,
    -- Whose interface a compatible one has; empty if it is nobody's that we know.
    preset             {text} NOT NULL DEFAULT '',
    base_url           {text} NOT NULL,
    -- The protocols that it is asked in, with commas between them.
    protocols          {text} NOT NULL,
    enabled            {int}  NOT NULL DEFAULT 1,
    connect_timeout_ms {int}  NOT NULL,
    answer_timeout_ms  {int}  NOT NULL,
    -- The address of an outgoing proxy, sealed: it may contain a password.
    proxy              {text},
    created_at         {int}  NOT NULL,
    updated_at         {int}  NOT NULL
);
CREATE UNIQUE INDEX provider_name ON provider (name);

-- The keys at a provider, in the order in which they are asked.
CREATE TABLE provider_key (
    id          {text} NOT NULL PRIMARY KEY,
    provider_id {text} NOT NULL REFERENCES provider (id),
    secret      {text} NOT NULL,
    -- The last four characters.
    hint        {text} NOT NULL,
    place       {int}  NOT NULL,
    created_at  {int}  NOT NULL
);
CREATE INDEX provider_key_provider ON provider_key (provider_id, place);

-- Until when a key is spared. Keys of the configuration have rows here and in provider_health too.
CREATE TABLE provider_cooling (
    key_id   {text} NOT NULL,
    -- The model that is not asked with it; empty where it holds for all.
    model    {text} NOT NULL,
    reason   {text} NOT NULL,
    until_at {int}  NOT NULL,
    PRIMARY KEY (key_id, model)
);

-- What real requests met, by key; the key is empty for a provider without one.
CREATE TABLE provider_health (
    provider_id       {text} NOT NULL,
    key_id            {text} NOT NULL,
    last_success_at   {int},
    last_failure_at   {int},
    failure           {text} NOT NULL DEFAULT '',
    -- The begin of the half hour that the first two counts are of; the others are of the one before.
    window_at         {int}  NOT NULL,
    succeeded         {int}  NOT NULL DEFAULT 0,
    failed            {int}  NOT NULL DEFAULT 0,
    succeeded_before  {int}  NOT NULL DEFAULT 0,
    failed_before     {int}  NOT NULL DEFAULT 0,
    PRIMARY KEY (provider_id, key_id)
);
