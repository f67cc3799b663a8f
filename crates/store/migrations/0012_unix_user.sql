-- oldest: 11
-- Whose user and home an instance has on its server, and the Unix users that the platform made.

-- none: it is not on its server. unknown: nobody has looked yet. own: user and home were made by the platform, for it alone.
-- adopted: somebody else made its user or home. shared: it runs as root or as the login user, or in a home that is another's too.
ALTER TABLE instance ADD COLUMN isolation {text} NOT NULL DEFAULT 'none';
-- The Unix user as last seen; empty before.
ALTER TABLE instance ADD COLUMN runs_as {text} NOT NULL DEFAULT '';
UPDATE instance SET isolation = 'unknown' WHERE home <> '';
UPDATE instance SET isolation = 'adopted' WHERE container_id <> '';
UPDATE instance SET isolation = 'shared' WHERE is_main = 1;

-- A number is given to another instance only after its user was removed and nothing on the server belongs to it any more.
CREATE TABLE unix_user (
    server_id   {text} NOT NULL REFERENCES server (id),
    uid         {int}  NOT NULL,
    name        {text} NOT NULL,
    instance_id {text} NOT NULL REFERENCES instance (id),
    created_at  {int}  NOT NULL,
    removed_at  {int},
    PRIMARY KEY (server_id, uid)
);
CREATE INDEX unix_user_instance ON unix_user (instance_id);
