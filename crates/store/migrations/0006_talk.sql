-- Talking to an assistant: one-time tickets of sockets, what a chat-bot's webhook is secured with, the embedded window.

-- A ticket opens one socket, on any replica. Who may use it is the login that asked for it.
CREATE TABLE ticket (
    -- A keyed hash: the ticket itself is only with its owner.
    hash        {text} NOT NULL PRIMARY KEY,
    user_id     {text} NOT NULL REFERENCES users (id),
    instance_id {text} NOT NULL REFERENCES instance (id),
    -- The login's token: its id, and the seconds in which it was issued and ends.
    jti         {text} NOT NULL,
    issued_at   {int}  NOT NULL,
    token_ends  {int}  NOT NULL,
    expires_at  {int}  NOT NULL
);
CREATE INDEX ticket_expires ON ticket (expires_at);

-- What the bot platform shows with every message that it delivers, sealed; NULL for a bot that is polled.
ALTER TABLE chat_binding ADD COLUMN webhook_secret {text};

-- 0 where the instance's own page is not offered in the embedded window.
ALTER TABLE instance ADD COLUMN embed_enabled {int} NOT NULL DEFAULT 1;

-- The history of one conversation.
CREATE INDEX chat_message_session ON chat_message (user_id, session_key, created_at, id);
