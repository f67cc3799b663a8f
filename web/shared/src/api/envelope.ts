// The one place that knows the envelope {code, data, msg}: an answer becomes its data or a typed ApiError.

/** Codes beside the server's own: nothing came back, or something that is not an envelope. */
export type LocalCode = 'network' | 'malformed';

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: string;
  readonly msg: string;
  readonly status: number;
  readonly requestId: string | null;
  /** Seconds to wait, from Retry-After. */
  readonly retryAfter: number | null;

  constructor(fields: {
    code: string;
    msg: string;
    status: number;
    requestId?: string | null;
    retryAfter?: number | null;
  }) {
    super(`${fields.code} ${fields.msg}`);
    this.code = fields.code;
    this.msg = fields.msg;
    this.status = fields.status;
    this.requestId = fields.requestId ?? null;
    this.retryAfter = fields.retryAfter ?? null;
  }

  /** The field that a refused request is about: such a message reads "field: what is wrong with it". */
  get field(): string | null {
    return this.status === 400 ? (/^(\w+): /.exec(this.msg)?.[1] ?? null) : null;
  }

  /** Trying again may help without anybody changing anything. */
  get passing(): boolean {
    return this.status === 0 || this.status >= 500;
  }
}

interface Envelope<T> {
  code: string | number;
  data?: T;
  msg: string;
}

/** What openapi-fetch resolves to, as far as it matters here. */
interface Answer<T> {
  data?: Envelope<T>;
  error?: unknown;
  response: Response;
}

function isEnvelope(value: unknown): value is Envelope<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const { code, msg } = value as Record<string, unknown>;
  return (typeof code === 'string' || typeof code === 'number') && typeof msg === 'string';
}

/** The specification shows both forms of success. */
function isSuccess(code: string | number): boolean {
  return code === '0000' || code === 0;
}

export function retryAfterSeconds(header: string | null, now: number = Date.now()): number | null {
  if (header === null || header.trim() === '') return null;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, Math.ceil(seconds));
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, Math.ceil((date - now) / 1000));
}

export async function unwrap<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (cause) {
    // A cancelled request is not a failure to report.
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    const code: LocalCode = cause instanceof SyntaxError ? 'malformed' : 'network';
    throw new ApiError({ code, msg: String(cause), status: 0 });
  }

  const { response } = answer;
  const body: unknown = answer.data ?? answer.error;
  const requestId = response.headers.get('x-request-id');
  if (!isEnvelope(body)) {
    const code: LocalCode = 'malformed';
    throw new ApiError({ code, msg: `HTTP ${response.status}`, status: response.status, requestId });
  }
  if (!response.ok || !isSuccess(body.code)) {
    throw new ApiError({
      code: String(body.code),
      msg: body.msg,
      status: response.status,
      requestId,
      retryAfter: retryAfterSeconds(response.headers.get('retry-after')),
    });
  }
  return (body.data ?? null) as T;
}
