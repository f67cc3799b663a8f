// @vitest-environment happy-dom
// What finding in a thread finds.
import { describe, expect, it } from 'vitest';
import type { Message } from '../engine/types';
import { matching, rangesOf } from './matches';

const message = (text: string): Message => ({ id: text, role: 'user', text, at: 0, status: 'sent' });

describe('finding', () => {
  it('names the messages, whatever the case', () => {
    const messages = ['High tide', 'low', 'the TIDE tables'].map(message);
    expect(matching(messages, ' tide ')).toEqual([0, 2]);
    expect(matching(messages, 'ebb')).toEqual([]);
    expect(matching(messages, '  ')).toEqual([]);
  });

  it('names every place in what is drawn', () => {
    const root = document.createElement('div');
    root.innerHTML = '<p>Tide and <b>tide</b></p><pre>notidetide</pre>';
    expect(rangesOf(root, 'TIDE').map(String)).toEqual(['Tide', 'tide', 'tide', 'tide']);
    expect(rangesOf(root, '')).toEqual([]);
  });
});
