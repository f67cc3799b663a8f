-- oldest: 11
-- Whose answers of the Responses API may be continued (previous_response_id): all sub keys share the provider's account, where the
-- answers are kept.
CREATE TABLE answer_owner (
    -- The provider's id of the answer.
    id          {text} NOT NULL PRIMARY KEY,
    -- The fingerprint of the sub key that got it. A key that is changed does not continue what the one before began.
    owner       {text} NOT NULL,
    -- All tokens of the answer: whoever continues it pays for them as input.
    tokens      {int}  NOT NULL,
    expires_at  {int}  NOT NULL
);
CREATE INDEX answer_owner_expiry ON answer_owner (expires_at);
