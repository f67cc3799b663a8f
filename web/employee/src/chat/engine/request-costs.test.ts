// @vitest-environment happy-dom
// A cost is the request log's, and only where the reply's requests are surely in it.
import { expect, it } from 'vitest';
import { costsOf, type Used } from './request-costs';

const NOW = Date.parse('2026-11-15T10:00:00Z');

function row(seconds: number, prompt: number, completion: number, cost: number) {
  return {
    time: new Date(NOW + seconds * 1000).toISOString(),
    instance_id: 'a',
    model: 'm',
    prompt_tokens: prompt,
    completion_tokens: completion,
    cost_usd: cost,
    latency_ms: 1,
    status: 'success' as const,
    is_stream: true,
    estimated: false,
  };
}

function used(id: string, seconds: number, calls: [prompt: number, completion: number][]): Used {
  const all = calls.map(([prompt, completion]) => ({ prompt, completion, total: prompt + completion }));
  const sum = (of: (call: (typeof all)[number]) => number) => all.reduce((so, call) => so + of(call), 0);
  const usage = {
    prompt: sum((c) => c.prompt),
    completion: sum((c) => c.completion),
    total: sum((c) => c.total),
  };
  return {
    id,
    at: NOW + seconds * 1000,
    usage: { ...usage, cost: null, ...(all.length > 1 && { calls: all }) },
  };
}

it('finds each reply its own request, the nearest one with the same numbers', () => {
  const costs = costsOf(
    [used('first', 0, [[10, 2]]), used('second', 60, [[10, 2]])],
    [row(61, 10, 2, 0.2), row(1, 10, 2, 0.1), row(30, 10, 3, 9)],
  );
  expect([...costs]).toEqual([
    ['second', 0.2],
    ['first', 0.1],
  ]);
});

it('adds up the requests of a reply with tools, and says nothing while one is missing', () => {
  const reply = used('r', 0, [
    [10, 2],
    [20, 4],
  ]);
  expect(costsOf([reply], [row(0, 10, 2, 0.1), row(5, 20, 4, 0.25)]).get('r')).toBeCloseTo(0.35);
  expect(costsOf([reply], [row(0, 10, 2, 0.1)]).size).toBe(0);
});

it('takes no request from before it was asked for, even where that is the nearest', () => {
  const asked = { ...used('r', 4, [[10, 2]]), since: NOW };
  expect(costsOf([asked], [row(-3, 10, 2, 0.1)]).size).toBe(0);
  expect(costsOf([asked], [row(-3, 10, 2, 0.1), row(30, 10, 2, 0.2)]).get('r')).toBe(0.2);
  // The server's clock may be a little behind.
  expect(costsOf([asked], [row(-1, 10, 2, 0.1)]).get('r')).toBe(0.1);
});

it('takes no request from another hour', () => {
  expect(costsOf([used('r', 0, [[10, 2]])], [row(3600, 10, 2, 0.1)]).size).toBe(0);
});
