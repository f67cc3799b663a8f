-- oldest: 11
-- Whom a task is for: 0 security, 1 people, 2 fleet, 3 background. The type's definition says so when the task is made; what an older
-- process makes counts as fleet.
ALTER TABLE task ADD COLUMN priority {int} NOT NULL DEFAULT 2;
-- The server that it works on, so that no server takes more than its share of the workers.
ALTER TABLE task ADD COLUMN server_id {text};
-- What one waiting task is enough for, such as "sync_models_to_instance" of an instance; NULL where each task counts.
ALTER TABLE task ADD COLUMN coalesce_key {text};
-- The task that it comes after: the end of an alert is delivered after its beginning.
ALTER TABLE task ADD COLUMN after_id {text};
-- The task that delivers an alert's beginning; NULL where it is not delivered.
ALTER TABLE alert ADD COLUMN delivery_id {text};

UPDATE task SET server_id = (SELECT i.server_id FROM instance i WHERE i.id = task.instance_id) WHERE instance_id IS NOT NULL;
UPDATE task SET priority = CASE
    WHEN type IN ('apply_key', 'clear_webhook') THEN 0
    WHEN type IN ('sync_models_to_instance') THEN 3
    WHEN type IN ('provision_instance', 'retire_instance', 'prepare_server', 'upgrade_instance', 'confine_instance', 'repair_instance') THEN 2
    ELSE 1 END;

CREATE INDEX task_turn ON task (priority, next_attempt_at, id) WHERE status IN ('pending', 'failed');
CREATE UNIQUE INDEX task_coalesced ON task (coalesce_key) WHERE status = 'pending';
-- Old tasks are deleted, but for those of items that are on an instance.
CREATE INDEX install_task ON install (task_id);

-- A revocation beside a release marked the key of whoever came next. A foreign gateway hears of the correction, since the key is
-- dirty and has changed.
UPDATE gateway_key SET dirty = 1, updated_at = updated_at + 1, user_revoked = CASE WHEN EXISTS (SELECT 1 FROM instance i JOIN users u ON u.id = i.assigned_user_id
    WHERE i.id = gateway_key.instance_id AND u.status = 'revoked') THEN 1 ELSE 0 END
WHERE deleted_at IS NULL AND user_revoked <> CASE WHEN EXISTS (SELECT 1 FROM instance i JOIN users u ON u.id = i.assigned_user_id
    WHERE i.id = gateway_key.instance_id AND u.status = 'revoked') THEN 1 ELSE 0 END;
