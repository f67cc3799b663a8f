-- What an installation of early 2025 has not got.
DROP INDEX "LiteLLM_SpendLogs_startTime_request_id_idx";
ALTER TABLE "LiteLLM_SpendLogs" DROP COLUMN "status";
ALTER TABLE "LiteLLM_SpendLogs" DROP COLUMN "request_duration_ms";
ALTER TABLE "LiteLLM_SpendLogs" DROP COLUMN "session_id";
ALTER TABLE "LiteLLM_SpendLogs" DROP COLUMN "litellm_call_id";
ALTER TABLE "LiteLLM_SpendLogs" DROP COLUMN "created_at";
ALTER TABLE "LiteLLM_SpendLogs" DROP COLUMN "updated_at";
ALTER TABLE "LiteLLM_VerificationToken" DROP COLUMN "total_spend";
