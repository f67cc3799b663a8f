// The envelope becomes data or a typed error, whatever comes back.
import { describe, expect, it } from 'vitest';
import { ApiError, retryAfterSeconds, unwrap } from './envelope';

function answer(status: number, body: unknown, headers: Record<string, string> = {}) {
  const response = new Response(null, { status, headers });
  const field = status < 300 ? { data: body } : { error: body };
  return Promise.resolve({ ...field, response }) as Parameters<typeof unwrap>[0];
}

async function failure(call: Parameters<typeof unwrap>[0]): Promise<ApiError> {
  const error: unknown = await unwrap(call).catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

describe('unwrap', () => {
  it.each(['0000', 0])('takes %j as success', async (code) => {
    expect(await unwrap(answer(200, { code, data: { id: 7 }, msg: 'ok' }))).toEqual({ id: 7 });
  });

  it('answers null when there is no data', async () => {
    expect(await unwrap(answer(200, { code: '0000', data: null, msg: 'ok' }))).toBeNull();
    expect(await unwrap(answer(200, { code: '0000', msg: 'ok' }))).toBeNull();
  });

  it('carries code, message, status, request id and waiting time of a refusal', async () => {
    const headers = { 'x-request-id': 'r-1', 'retry-after': '42' };
    const error = await failure(answer(429, { code: '4290', data: null, msg: 'too many requests' }, headers));
    expect(error).toMatchObject({
      code: '4290',
      msg: 'too many requests',
      status: 429,
      requestId: 'r-1',
      retryAfter: 42,
    });
    expect(error.passing).toBe(false);
  });

  it('knows which field a refusal is about', async () => {
    const refusal = (msg: string) => failure(answer(400, { code: '4000', data: null, msg }));
    expect((await refusal('old: is not the current password')).field).toBe('old');
    expect((await refusal('bad request')).field).toBeNull();
  });

  it('is an error when the code is not success, even with status 200', async () => {
    expect((await failure(answer(200, { code: '4000', data: null, msg: 'bad request' }))).code).toBe('4000');
  });

  it('calls an answer without an envelope malformed', async () => {
    expect(await failure(answer(502, '<html>'))).toMatchObject({
      code: 'malformed',
      status: 502,
      passing: true,
    });
    expect(await failure(answer(200, [1, 2]))).toMatchObject({ code: 'malformed' });
    expect(await failure(Promise.reject(new SyntaxError('Unexpected token')))).toMatchObject({
      code: 'malformed',
    });
  });

  it('calls a failed connection network', async () => {
    const error = await failure(Promise.reject(new TypeError('Failed to fetch')));
    expect(error).toMatchObject({ code: 'network', status: 0, passing: true });
  });

  it('passes a cancelled request on', async () => {
    const abort = new DOMException('cancelled', 'AbortError');
    await expect(unwrap(Promise.reject(abort))).rejects.toBe(abort);
  });
});

describe('retryAfterSeconds', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  it('reads seconds and dates', () => {
    expect(retryAfterSeconds('120')).toBe(120);
    expect(retryAfterSeconds('Thu, 01 Jan 2026 00:01:30 GMT', now)).toBe(90);
    expect(retryAfterSeconds('Wed, 31 Dec 2025 00:00:00 GMT', now)).toBe(0);
  });
  it('knows nothing without a readable header', () => {
    expect(retryAfterSeconds(null)).toBeNull();
    expect(retryAfterSeconds('')).toBeNull();
    expect(retryAfterSeconds('soon')).toBeNull();
  });
});
