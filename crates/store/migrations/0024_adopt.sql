-- oldest: 11
-- An adopted instance may keep the model provider of its own: then the platform gives it no key and no models.
ALTER TABLE instance ADD COLUMN own_llm {int} NOT NULL DEFAULT 0;
