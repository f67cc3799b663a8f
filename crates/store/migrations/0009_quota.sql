-- What was logged under a key's name before its quota began to count: what was used of it is what was logged since. At the embedded
-- gateway that is what was carried over when the record was made. At a foreign one, keys that were changed for another are carried
-- too; there the sums up to the record's making say it, to a quarter of an hour.
ALTER TABLE gateway_key ADD COLUMN quota_from {int} NOT NULL DEFAULT 0;
UPDATE gateway_key SET quota_from = carried_quota WHERE gateway_id = '';
UPDATE gateway_key SET quota_from = COALESCE((SELECT CAST(SUM(u.quota) AS BIGINT) FROM usage_slot u
    WHERE u.token_name = gateway_key.name AND u.slot + 900000 <= gateway_key.created_at), 0) WHERE gateway_id <> '';
