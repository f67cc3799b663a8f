-- oldest: 11
-- Sums of request_log by token since ever, kept as rows are added: what the instances' totals are copied from.
CREATE TABLE usage_total (
    token_name        {text} NOT NULL PRIMARY KEY,
    requests          {int}  NOT NULL,
    errors            {int}  NOT NULL,
    prompt_tokens     {int}  NOT NULL,
    completion_tokens {int}  NOT NULL,
    quota             {int}  NOT NULL
);
INSERT INTO usage_total (token_name, requests, errors, prompt_tokens, completion_tokens, quota)
SELECT token_name, CAST(SUM(requests) AS BIGINT), CAST(SUM(errors) AS BIGINT), CAST(SUM(prompt_tokens) AS BIGINT),
    CAST(SUM(completion_tokens) AS BIGINT), CAST(SUM(quota) AS BIGINT)
FROM usage_daily GROUP BY token_name;
