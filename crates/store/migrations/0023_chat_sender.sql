-- oldest: 11
-- Whose messages a bot answers, besides the chat_id that it was bound with. Rows go when the binding ends.
CREATE TABLE chat_sender (
    binding_id {text} NOT NULL REFERENCES chat_binding (id),
    -- The sender's id at the chat platform.
    sender_id  {text} NOT NULL,
    -- As the sender calls itself there; empty if the id was entered by hand.
    name       {text} NOT NULL DEFAULT '',
    created_at {int}  NOT NULL,
    PRIMARY KEY (binding_id, sender_id)
);
