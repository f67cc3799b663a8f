// An alert about a repair is named by what was found; all that are about an instance lead to it.
import { expect, it } from 'vitest';
import { en } from '../messages/en';
import { alertText } from './alert-text';

const text = (rule: string, subject: string, message: string) =>
  alertText({ rule, subject, message }, (key) => en[key]);

it('names a repair by its finding', () => {
  const found = 'port 19029: held by assistant-70000, and not by the instance alone';
  expect(
    text('instances_unhealthy', 'repair:fra-2-c:foreign_listener', `fra-2-c: foreign_listener: ${found}`),
  ).toEqual({
    title: 'Another user answers on its port',
    message: found,
    instance: { id: 'fra-2-c', href: '/instances?open=fra-2-c&tab=repairs' },
  });
});

it('leads to an instance', () => {
  const message = 'Lisbon 1 B is in a profession’s pool, but it runs as root';
  expect(text('instance_not_isolated', 'instance:lis-1-b', message)).toEqual({
    title: en['alerts.instance_not_isolated'],
    message,
    instance: { id: 'lis-1-b', href: '/instances?open=lis-1-b' },
  });
});

it('leads to the limit that a home is over', () => {
  const message = 'the home of Lisbon 1 B takes 12000 MiB of disk; its limit is 10240';
  expect(text('disk_over_limit', 'instance:lis-1-b', message)).toEqual({
    title: en['alerts.disk_over_limit'],
    message,
    instance: { id: 'lis-1-b', href: '/instances?open=lis-1-b&tab=cell' },
  });
});

it('leads to where somebody decides about a difference', () => {
  const why = 'it takes a restart: it is brought with the next one, or by a person';
  const alert = (message: string) => text('instances_unhealthy', 'instance:fra-2-c:configuration', message);
  expect(alert(`fra-2-c is not what our records want (gateway.port: 1 → 2; a: (x) → y); ${why}`)).toEqual({
    title: en['alerts.differs'],
    message: `gateway.port: 1 → 2; a: (x) → y · ${en['ask.restart']}`,
    instance: { id: 'fra-2-c', href: '/instances?open=fra-2-c&tab=state' },
    asks: true,
  });
  // A message of another form stays what it is.
  expect(alert('something differs').message).toBe('something differs');
});

it('leaves what is about anything else, or new, as the server says it', () => {
  expect(text('gateway_down', 'gateway', 'It does not answer')).toEqual({
    title: en['alerts.gateway_down'],
    message: 'It does not answer',
  });
  expect(text('moon_is_full', 'task:1', 'Look up')).toEqual({ title: 'moon_is_full', message: 'Look up' });
});
