// Endpoints that the committed OpenAPI document does not name yet, with their shapes by hand. A server without them
// answers 404, which the pages show as what it is: not available.
import { ApiError, unwrap } from '@tidepool/shared/api/envelope';
import { api } from './api';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH';
type Untyped = (path: string, init: object) => Promise<{ data?: never; error?: unknown; response: Response }>;

/** The typed client's own way out, token and all, for a path that its types do not know. */
export function call<T>(method: Method, path: string, body?: unknown): Promise<T> {
  const send = api[method] as unknown as Untyped;
  return unwrap<T>(send(path, body === undefined ? {} : { body }));
}

export function notAvailable(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 405);
}

/** The answer of /llm-stats: in the document two schemas share one name, and the other one won. */
export interface UsageStats {
  stats: {
    key: string;
    instance?: string | null;
    calls: number;
    tokens: number;
    cost_usd: number;
  }[];
  as_of: string;
  stale: boolean;
}

export interface Enqueued {
  task_id: string;
}

export interface Drift {
  path: string;
  is: unknown;
  should: unknown;
}

/** The configuration on the server, and what the platform's records would change in it. Secrets are `***`. */
export interface HostConfig {
  version: string;
  config: Record<string, unknown>;
  hash: string;
  untouched: boolean;
  drift: Drift[];
}

export interface JournalLine {
  time: string;
  text: string;
}

export interface TestStep {
  step: string;
  ok: boolean;
  detail: string;
  ms: number;
}

export interface Tested {
  ok: boolean;
  host_key?: string | null;
  steps: TestStep[];
}

export interface Container {
  id: string;
  name: string;
  image: string;
  status: string;
  ports: string;
  created_at?: string | null;
}

export interface JobRun {
  id: string | number;
  job_name: string;
  status: 'running' | 'success' | 'failed' | 'skipped';
  duration_ms: number;
  message: string;
  created_at: string;
}

export interface Listing<Row> {
  list: Row[];
  total: number;
}

export interface GuardianStats {
  today: { total_events: number; success: number; failed: number; success_rate: number | null };
  dimensions: {
    dimension: string;
    label: string;
    status: 'healthy' | 'warning' | 'abnormal' | 'unknown';
    today_total: number;
    today_success: number;
    today_failed: number;
    last_check_at: string | null;
  }[];
  job_runs: {
    job: string;
    label: string;
    status: string;
    message: string;
    duration_ms: number;
    ran_at: string;
  }[];
}

export interface GuardianEvent {
  id: number;
  dimension: string;
  target_id: string;
  status: 'success' | 'failed';
  problem: string;
  action_taken: string;
  extra: string;
  created_at: string;
}

/** One automatic repair: what was found, what was done, what came of it. */
export interface Repair {
  id: string | number;
  instance_id: string;
  rule: string;
  evidence: string;
  action: string;
  result: string;
  status: string;
  created_at: string;
}

export interface Alert {
  id: string | number;
  rule: string;
  message: string;
  created_at: string;
  acked_at?: string | null;
  resolved_at?: string | null;
}

export interface AlertRule {
  id: string;
  enabled: boolean;
  threshold?: number | null;
  channel?: string | null;
}
