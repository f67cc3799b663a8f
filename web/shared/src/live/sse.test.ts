// The event parser must not care how the network cuts the stream.
import { describe, expect, it } from 'vitest';
import { EventParser } from './sse';

const STREAM = 'id: 7\nevent: instance\ndata: {"id":"a"}\n\n: ping\n\ndata: one\r\ndata: two\r\n\r\n';

describe('EventParser', () => {
  it('reads whole events', () => {
    expect(new EventParser().push(STREAM)).toEqual([
      { event: 'instance', data: '{"id":"a"}', id: '7' },
      { event: 'message', data: 'one\ntwo', id: '7' },
    ]);
  });

  it('finds the same events however the text is cut', () => {
    for (let size = 1; size < 12; size += 1) {
      const parser = new EventParser();
      const events = [];
      for (let at = 0; at < STREAM.length; at += size)
        events.push(...parser.push(STREAM.slice(at, at + size)));
      expect(events.map((event) => event.data)).toEqual(['{"id":"a"}', 'one\ntwo']);
    }
  });
});
