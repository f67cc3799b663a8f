-- oldest: 11
-- The second factor of an employee or administrator: a secret that is shared with an authenticator app. No row: none was ever set up.
CREATE TABLE second_factor (
    account_id     {text} NOT NULL PRIMARY KEY,
    -- employee or admin
    side           {text} NOT NULL,
    -- Sealed. Null until a first code has confirmed that the app has it.
    secret         {text},
    enabled_at     {int},
    -- The last period whose code was used: neither that code nor an older one is good again.
    last_step      {int}  NOT NULL DEFAULT 0,
    -- Sealed. A secret that was shown and not yet confirmed.
    pending_secret {text},
    pending_at     {int}
);

-- What signs in once in place of a code. Each has 80 random bits, so that a plain SHA-256 of it gives nothing away.
CREATE TABLE recovery_code (
    account_id {text} NOT NULL,
    hash       {text} NOT NULL,
    used_at    {int},
    PRIMARY KEY (account_id, hash)
);

-- A password that somebody else set, until its owner has acknowledged it.
CREATE TABLE password_reset (
    account_id {text} NOT NULL PRIMARY KEY,
    side       {text} NOT NULL,
    reset_by   {text} NOT NULL,
    reset_at   {int}  NOT NULL
);
