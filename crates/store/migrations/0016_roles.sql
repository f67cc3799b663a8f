-- oldest: 11
-- Who asked for a task. Its source is a label, which whoever asks may choose.
ALTER TABLE task ADD COLUMN operator {text} NOT NULL DEFAULT 'System';

-- The newest messages are kept of each user on each instance: the next holder's do not push out the former one's.
CREATE INDEX chat_message_kept ON chat_message (instance_id, user_id, created_at, id);
