-- One API 0.6.11 as its migration leaves it on SQLite.
CREATE TABLE `users` (
    `id` integer PRIMARY KEY AUTOINCREMENT,
    `username` text UNIQUE,
    `password` text NOT NULL,
    `display_name` text,
    `role` integer DEFAULT 1,
    `status` integer DEFAULT 1,
    `email` text,
    `github_id` text,
    `wechat_id` text,
    `lark_id` text,
    `oidc_id` text,
    `access_token` char(32),
    `quota` integer DEFAULT 0,
    `used_quota` integer DEFAULT 0,
    `request_count` integer DEFAULT 0,
    `group` varchar(32) DEFAULT 'default',
    `aff_code` varchar(32),
    `inviter_id` integer
);
CREATE UNIQUE INDEX `idx_users_access_token` ON `users` (`access_token`);
CREATE UNIQUE INDEX `idx_users_aff_code` ON `users` (`aff_code`);
CREATE TABLE `tokens` (
    `id` integer PRIMARY KEY AUTOINCREMENT,
    `user_id` integer,
    `key` char(48),
    `status` integer DEFAULT 1,
    `name` text,
    `created_time` integer,
    `accessed_time` integer,
    `expired_time` integer DEFAULT -1,
    `remain_quota` integer DEFAULT 0,
    `unlimited_quota` numeric DEFAULT false,
    `used_quota` integer DEFAULT 0,
    `models` text,
    `subnet` text DEFAULT ''
);
CREATE UNIQUE INDEX `idx_tokens_key` ON `tokens` (`key`);
CREATE INDEX `idx_tokens_name` ON `tokens` (`name`);
CREATE TABLE `logs` (
    `id` integer PRIMARY KEY AUTOINCREMENT,
    `user_id` integer,
    `created_at` integer,
    `type` integer,
    `content` text,
    `username` text DEFAULT '',
    `token_name` text DEFAULT '',
    `model_name` text DEFAULT '',
    `quota` integer DEFAULT 0,
    `prompt_tokens` integer DEFAULT 0,
    `completion_tokens` integer DEFAULT 0,
    `channel_id` integer,
    `request_id` text DEFAULT '',
    `elapsed_time` integer DEFAULT 0,
    `is_stream` numeric DEFAULT false,
    `system_prompt_reset` numeric DEFAULT false
);
CREATE INDEX `idx_logs_user_id` ON `logs` (`user_id`);
CREATE INDEX `idx_created_at_type` ON `logs` (`created_at`, `type`);
CREATE INDEX `idx_logs_token_name` ON `logs` (`token_name`);
CREATE INDEX `idx_logs_model_name` ON `logs` (`model_name`);
CREATE INDEX `index_username_model_name` ON `logs` (`model_name`, `username`);
CREATE INDEX `idx_logs_channel_id` ON `logs` (`channel_id`);
