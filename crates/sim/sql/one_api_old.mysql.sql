-- What an installation from before 0.6.5 has not got: its tables were made older than the columns.
ALTER TABLE `logs` DROP COLUMN `request_id`;
ALTER TABLE `logs` DROP COLUMN `elapsed_time`;
ALTER TABLE `logs` DROP COLUMN `is_stream`;
ALTER TABLE `logs` DROP COLUMN `system_prompt_reset`;
