-- When files of an item were first about to be put on the instance: from then on some may be there, whatever came of it.
ALTER TABLE install ADD COLUMN touched_at {int};
UPDATE install SET touched_at = COALESCE(installed_at, updated_at) WHERE state <> 'pending' OR installed_at IS NOT NULL;
