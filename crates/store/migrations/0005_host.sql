-- What is known of servers once somebody has been there.

-- The server's own key, pinned at the first contact; empty before.
ALTER TABLE server ADD COLUMN host_key {text} NOT NULL DEFAULT '';
-- A private key to log in with, sealed; NULL when a file on this machine holds it.
ALTER TABLE server ADD COLUMN ssh_key {text};
-- Where the homes of instances are.
ALTER TABLE server ADD COLUMN base_dir {text} NOT NULL DEFAULT '/srv/assistants';
-- When it was last prepared for assistants, and the OpenClaw that was installed then.
ALTER TABLE server ADD COLUMN openclaw_version {text} NOT NULL DEFAULT '';
ALTER TABLE server ADD COLUMN prepared_at {int};

-- The OpenClaw that the instance runs; empty until it was asked.
ALTER TABLE instance ADD COLUMN openclaw_version {text} NOT NULL DEFAULT '';
-- The hash of the configuration that we wrote last: another one on the host is drift.
ALTER TABLE instance ADD COLUMN config_hash {text} NOT NULL DEFAULT '';

-- Containers as they were when a server was last asked.
CREATE TABLE container (
    server_id  {text} NOT NULL REFERENCES server (id),
    id         {text} NOT NULL,
    name       {text} NOT NULL,
    image      {text} NOT NULL,
    status     {text} NOT NULL,
    ports      {text} NOT NULL,
    created_at {text} NOT NULL,
    seen_at    {int}  NOT NULL,
    PRIMARY KEY (server_id, id)
);
