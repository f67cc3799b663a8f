// The three sentences of the server have words in both languages, and are still those that it says.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { en } from '../messages/en';
import { zh } from '../messages/zh';
import { askText } from './ask-text';

const source = readFileSync(
  path.join(import.meta.dirname, '../../../../crates/fleet/src/reconcile/pass.rs'),
  'utf8',
);

it.each([
  ['NEEDS_RESTART', 'ask.restart'],
  ['DOES_NOT_STAY', 'ask.undone'],
  ['KEEPS_FAILING', 'ask.failing'],
] as const)('%s', (name, key) => {
  const sentence = new RegExp(`const ${name}: &str = "([^"]+)"`).exec(source)?.[1] ?? '';
  expect(sentence).not.toBe('');
  expect(askText(sentence, (one) => en[one])).toBe(en[key]);
  expect(askText(sentence, (one) => zh[one])).toBe(zh[key]);
});

it('leaves another sentence as it is', () => {
  expect(askText('the moon is full', (key) => en[key])).toBe('the moon is full');
});
