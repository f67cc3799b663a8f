// Shapes as GET /instances/{id}/config/versions/{version} answers them.
import { describe, expect, it } from 'vitest';
import { segmentsOf, takeOver } from './take-over';

describe('a place', () => {
  it.each([
    ['ui.a', ['ui', 'a']],
    ['models.providers["a.b"].models[0].id', ['models', 'providers', 'a.b', 'models', 0, 'id']],
    ['agents.defaults.models["openai/gpt-4o"]', ['agents', 'defaults', 'models', 'openai/gpt-4o']],
    ['[""]', ['']],
    ['a["\\"q\\""]', ['a', '"q"']],
  ])('%s', (path, segments) => {
    expect(segmentsOf(path)).toEqual(segments);
  });

  it.each(['<root>', '', 'a["\\u{7f}"]', 'a.__proto__.b'])('%s is none', (path) => {
    expect(segmentsOf(path)).toBeNull();
  });
});

describe('taking over', () => {
  const past = {
    config: { ui: { a: 1, list: [1, { x: 2 }] }, tools: { list: [{ key: '***', x: 1 }] } },
    changes: [
      { path: 'ui.a', is: 2, should: 1 },
      { path: 'ui.list[1].x', is: 3, should: 2 },
      { path: 'ui["b.c"]', is: 3, should: null },
      { path: 'gateway.auth.token', is: '***', should: '***' },
      { path: 'channels.bot.token', is: '***', should: null },
      { path: 'tools.list[0].x', is: 2, should: 1 },
      { path: 'meta.lastTouchedVersion', is: '2026.9.6', should: '2026.9.5' },
    ],
  };

  it('sets values, takes away what was not there, and brings a list as a whole', () => {
    const { text, taken } = takeOver('{"ui": {"a": 2, "kept": true}, "other": [1]}', past);
    expect(JSON.parse(text)).toEqual({
      ui: { a: 1, kept: true, list: [1, { x: 2 }], 'b.c': null },
      other: [1],
    });
    expect(taken).toEqual(['ui.a', 'ui.list[1].x', 'ui["b.c"]']);
  });

  it('leaves out secrets, lists with secrets in them, and what OpenClaw notes about the file', () => {
    expect(takeOver('{}', past).left).toEqual([
      'gateway.auth.token',
      'channels.bot.token',
      'tools.list[0].x',
      'meta.lastTouchedVersion',
    ]);
    expect(takeOver('{}', past).text).not.toContain('***');
  });

  it('makes way through what is no object', () => {
    expect(JSON.parse(takeOver('{"ui": 5}', past).text)).toMatchObject({ ui: { a: 1 } });
  });
});
