-- Accounts of both sides, their sessions, what was done by whom, and the values the database itself keeps.

CREATE TABLE setting (
    name  {text} NOT NULL PRIMARY KEY,
    value {text} NOT NULL
);

CREATE TABLE users (
    id            {text} NOT NULL PRIMARY KEY,
    email         {text} NOT NULL,
    email_key     {text} NOT NULL UNIQUE,
    name          {text} NOT NULL,
    department    {text} NOT NULL,
    status        {text} NOT NULL,
    quota_daily   {int}  NOT NULL DEFAULT 0,
    password_hash {text},
    idp_id        {text} UNIQUE,
    -- Tokens issued before this second are dead.
    tokens_from   {int}  NOT NULL DEFAULT 0,
    created_at    {int}  NOT NULL,
    revoked_at    {int}
);
CREATE INDEX users_created ON users (created_at, id);
CREATE INDEX users_department ON users (department);

CREATE TABLE admin_users (
    id            {text} NOT NULL PRIMARY KEY,
    email         {text} NOT NULL,
    email_key     {text} NOT NULL UNIQUE,
    name          {text} NOT NULL,
    role          {text} NOT NULL,
    status        {text} NOT NULL,
    password_hash {text} NOT NULL,
    idp_id        {text} UNIQUE,
    tokens_from   {int}  NOT NULL DEFAULT 0,
    last_login_at {int},
    created_at    {int}  NOT NULL,
    deleted_at    {int}
);

-- Tokens that were ended before they expired.
CREATE TABLE ended_token (
    jti        {text} NOT NULL PRIMARY KEY,
    expires_at {int}  NOT NULL
);
CREATE INDEX ended_token_expiry ON ended_token (expires_at);

-- Failures and attempts counted per window, for every limit that several replicas share.
CREATE TABLE throttle (
    name         {text} NOT NULL PRIMARY KEY,
    window_start {int}  NOT NULL,
    hits         {int}  NOT NULL
);
CREATE INDEX throttle_window ON throttle (window_start);

CREATE TABLE audit_log (
    id           {serial},
    operator     {text} NOT NULL,
    operator_key {text} NOT NULL,
    action       {text} NOT NULL,
    level        {text} NOT NULL,
    target       {text} NOT NULL,
    detail       {text} NOT NULL,
    ip           {text} NOT NULL,
    user_agent   {text} NOT NULL,
    created_at   {int}  NOT NULL
);
CREATE INDEX audit_log_created ON audit_log (created_at, id);
CREATE INDEX audit_log_action ON audit_log (action, id);
CREATE INDEX audit_log_operator ON audit_log (operator_key, id);
CREATE INDEX audit_log_level ON audit_log (level, id);
