-- oldest: 11
-- What else is known of a request. NULL and '' are unknown, as in every row from before this step: they are never taken for 0.
-- All input, cached parts included, if the cached part is known.
ALTER TABLE request_log ADD COLUMN known_input_tokens {int};
ALTER TABLE request_log ADD COLUMN cache_read_tokens {int};
ALTER TABLE request_log ADD COLUMN cache_write_tokens {int};
ALTER TABLE request_log ADD COLUMN reasoning_tokens {int};
ALTER TABLE request_log ADD COLUMN protocol {text} NOT NULL DEFAULT '';
-- The model that was asked for; `model` is the one that answered.
ALTER TABLE request_log ADD COLUMN asked_model {text} NOT NULL DEFAULT '';
-- The end of the provider's key that was used, masked.
ALTER TABLE request_log ADD COLUMN key_hint {text} NOT NULL DEFAULT '';
-- How many tries failed before the last one.
ALTER TABLE request_log ADD COLUMN retries {int};
-- From the request to the first byte of the provider's answer.
ALTER TABLE request_log ADD COLUMN first_byte_ms {int};

-- Sums of the known parts. What was read from a cache is a part of known_input_tokens.
ALTER TABLE usage_slot ADD COLUMN cache_read_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_slot ADD COLUMN cache_write_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_slot ADD COLUMN reasoning_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_slot ADD COLUMN known_input_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN cache_read_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN cache_write_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN reasoning_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_daily ADD COLUMN known_input_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_total ADD COLUMN cache_read_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_total ADD COLUMN cache_write_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_total ADD COLUMN reasoning_tokens {int} NOT NULL DEFAULT 0;
ALTER TABLE usage_total ADD COLUMN known_input_tokens {int} NOT NULL DEFAULT 0;
