-- oldest: 11
-- Models are records: what is known of them, under which other names they are asked, where they are offered, and their prices by kind
-- of token, in versions. Whatever is not known is NULL or empty.

-- What its first provider calls it; empty if that is its id.
ALTER TABLE model ADD COLUMN upstream_name {text} NOT NULL DEFAULT '';
-- chat or embedding.
ALTER TABLE model ADD COLUMN purpose {text} NOT NULL DEFAULT 'chat';
-- The protocols in which it may be asked, with commas between them; empty is all that its provider speaks.
ALTER TABLE model ADD COLUMN protocols {text} NOT NULL DEFAULT '';
-- Tokens of input and output together, and of the longest answer.
ALTER TABLE model ADD COLUMN context_window {int};
ALTER TABLE model ADD COLUMN max_output {int};
-- What it reads, with commas between: text, image, document, audio.
ALTER TABLE model ADD COLUMN inputs {text} NOT NULL DEFAULT '';
ALTER TABLE model ADD COLUMN reasoning {int};
ALTER TABLE model ADD COLUMN tools {int};
-- Where these facts come from: empty while nothing is known, the release's table, or an administrator.
ALTER TABLE model ADD COLUMN facts {text} NOT NULL DEFAULT '';
-- Where the model comes from: the release, a foreign gateway, or an administrator.
ALTER TABLE model ADD COLUMN origin {text} NOT NULL DEFAULT 'release';
UPDATE model SET purpose = 'embedding' WHERE LOWER(id) LIKE '%embed%';

-- Other names under which a model is asked. No alias is another model's id.
CREATE TABLE model_alias (
    alias {text} NOT NULL PRIMARY KEY,
    model {text} NOT NULL REFERENCES model (id)
);
CREATE INDEX model_alias_model ON model_alias (model);

-- Further providers that offer a model, in the order in which they are asked, and what they call it.
CREATE TABLE model_offer (
    model         {text} NOT NULL REFERENCES model (id),
    provider      {text} NOT NULL,
    -- Empty if it is the model's id.
    upstream_name {text} NOT NULL DEFAULT '',
    place         {int}  NOT NULL,
    PRIMARY KEY (model, provider)
);

-- What a model costs from a time on. A request is priced by what was true when it was made.
CREATE TABLE model_price (
    model      {text} NOT NULL REFERENCES model (id),
    valid_from {int}  NOT NULL,
    -- Billionths of a dollar per 1,000 tokens of any kind: in force where the version has no rates.
    per_1k     {int}  NOT NULL,
    -- spec, edited or table.
    source     {text} NOT NULL,
    -- Who set it; empty for the platform.
    who        {text} NOT NULL DEFAULT '',
    PRIMARY KEY (model, valid_from)
);

-- The prices of a version by kind of token, in billionths of a dollar per million tokens; NULL is unknown.
CREATE TABLE model_rate (
    model          {text} NOT NULL,
    valid_from     {int}  NOT NULL,
    -- standard, flex, priority or batch.
    tier           {text} NOT NULL,
    -- For requests with more tokens of input than this.
    above          {int}  NOT NULL,
    input          {int},
    output         {int},
    cache_read     {int},
    cache_write    {int},
    cache_write_1h {int},
    PRIMARY KEY (model, valid_from, tier, above),
    FOREIGN KEY (model, valid_from) REFERENCES model_price (model, valid_from)
);

-- A price that is not the spec's was edited: it stays in force for all kinds of tokens.
INSERT INTO model_price (model, valid_from, per_1k, source)
SELECT id, created_at, price, CASE WHEN price = CASE id
    WHEN 'gpt-4o' THEN 2500000 WHEN 'gpt-4o-mini' THEN 150000
    WHEN 'claude-opus-4-6' THEN 15000000 WHEN 'claude-sonnet-4-6' THEN 3000000
    ELSE 2000000 END THEN 'spec' ELSE 'edited' END
FROM model;
