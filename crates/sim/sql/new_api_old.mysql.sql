-- What an installation from before 0.11 has not got, and the index that was made with its columns the wrong way round.
DROP INDEX `idx_logs_request_id` ON `logs`;
DROP INDEX `idx_logs_upstream_request_id` ON `logs`;
DROP INDEX `idx_user_id_id` ON `logs`;
DROP INDEX `idx_created_at_id` ON `logs`;
ALTER TABLE `logs` DROP COLUMN `request_id`;
ALTER TABLE `logs` DROP COLUMN `upstream_request_id`;
CREATE INDEX `idx_created_at_id` ON `logs` (`id`, `created_at`);
