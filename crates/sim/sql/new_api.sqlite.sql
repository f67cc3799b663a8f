-- new-api 1.0 as its migration leaves it on SQLite.
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
    `key` varchar(128),
    `status` integer DEFAULT 1,
    `name` text,
    `created_time` integer,
    `accessed_time` integer,
    `expired_time` integer DEFAULT -1,
    `remain_quota` integer DEFAULT 0,
    `unlimited_quota` numeric,
    `used_quota` integer DEFAULT 0,
    `model_limits_enabled` numeric,
    `model_limits` text,
    `allow_ips` text DEFAULT '',
    `group` text DEFAULT '',
    `cross_group_retry` numeric,
    `auto_groups` text,
    `deleted_at` datetime
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
    `use_time` integer DEFAULT 0,
    `is_stream` numeric,
    `token_id` integer DEFAULT 0,
    `group` text,
    `ip` text DEFAULT '',
    `request_id` varchar(64) DEFAULT '',
    `upstream_request_id` varchar(128) DEFAULT '',
    `other` text
);
CREATE INDEX `idx_logs_user_id` ON `logs` (`user_id`);
CREATE INDEX `idx_created_at_type` ON `logs` (`created_at`, `type`);
CREATE INDEX `idx_logs_token_name` ON `logs` (`token_name`);
CREATE INDEX `idx_logs_model_name` ON `logs` (`model_name`);
CREATE INDEX `index_username_model_name` ON `logs` (`model_name`, `username`);
CREATE INDEX `idx_logs_channel_id` ON `logs` (`channel_id`);
CREATE INDEX `idx_created_at_id` ON `logs` (`created_at`, `id`);
CREATE INDEX `idx_user_id_id` ON `logs` (`user_id`, `id`);
CREATE INDEX `idx_logs_token_id` ON `logs` (`token_id`);
CREATE INDEX `idx_logs_group` ON `logs` (`group`);
CREATE INDEX `idx_logs_ip` ON `logs` (`ip`);
CREATE INDEX `idx_logs_request_id` ON `logs` (`request_id`);
CREATE INDEX `idx_logs_upstream_request_id` ON `logs` (`upstream_request_id`);
