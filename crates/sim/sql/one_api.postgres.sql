-- One API 0.6.11 as its migration leaves it on PostgreSQL. The key is blank-padded.
CREATE TABLE "users" (
    "id" bigserial PRIMARY KEY,
    "username" text UNIQUE,
    "password" text NOT NULL,
    "display_name" text,
    "role" bigint DEFAULT 1,
    "status" bigint DEFAULT 1,
    "email" text,
    "github_id" text,
    "wechat_id" text,
    "lark_id" text,
    "oidc_id" text,
    "access_token" char(32),
    "quota" bigint DEFAULT 0,
    "used_quota" bigint DEFAULT 0,
    "request_count" bigint DEFAULT 0,
    "group" varchar(32) DEFAULT 'default',
    "aff_code" varchar(32),
    "inviter_id" bigint
);
CREATE UNIQUE INDEX "idx_users_access_token" ON "users" ("access_token");
CREATE UNIQUE INDEX "idx_users_aff_code" ON "users" ("aff_code");
CREATE TABLE "tokens" (
    "id" bigserial PRIMARY KEY,
    "user_id" bigint,
    "key" char(48),
    "status" bigint DEFAULT 1,
    "name" text,
    "created_time" bigint,
    "accessed_time" bigint,
    "expired_time" bigint DEFAULT -1,
    "remain_quota" bigint DEFAULT 0,
    "unlimited_quota" boolean DEFAULT false,
    "used_quota" bigint DEFAULT 0,
    "models" text,
    "subnet" text DEFAULT ''
);
CREATE UNIQUE INDEX "idx_tokens_key" ON "tokens" ("key");
CREATE INDEX "idx_tokens_name" ON "tokens" ("name");
CREATE TABLE "logs" (
    "id" bigserial PRIMARY KEY,
    "user_id" bigint,
    "created_at" bigint,
    "type" bigint,
    "content" text,
    "username" text DEFAULT '',
    "token_name" text DEFAULT '',
    "model_name" text DEFAULT '',
    "quota" bigint DEFAULT 0,
    "prompt_tokens" bigint DEFAULT 0,
    "completion_tokens" bigint DEFAULT 0,
    "channel_id" bigint,
    "request_id" text DEFAULT '',
    "elapsed_time" bigint DEFAULT 0,
    "is_stream" boolean DEFAULT false,
    "system_prompt_reset" boolean DEFAULT false
);
CREATE INDEX "idx_logs_user_id" ON "logs" ("user_id");
CREATE INDEX "idx_created_at_type" ON "logs" ("created_at", "type");
CREATE INDEX "idx_logs_token_name" ON "logs" ("token_name");
CREATE INDEX "idx_logs_model_name" ON "logs" ("model_name");
CREATE INDEX "index_username_model_name" ON "logs" ("model_name", "username");
CREATE INDEX "idx_logs_channel_id" ON "logs" ("channel_id");
