// The test both apps and the shared code run over their texts.
import { describe, expect, it } from 'vitest';
import { placeholders, type Messages } from './translate';

export function checkMessages(name: string, en: Messages, zh: Messages) {
  describe(`${name} texts`, () => {
    it('have the same keys in both languages', () => {
      expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
    });
    it.each(Object.keys(en))('%s has the same placeholders and is not empty', (key) => {
      expect(placeholders(zh[key] ?? '')).toEqual(placeholders(en[key] ?? ''));
      expect(en[key]?.trim()).not.toBe('');
      expect(zh[key]?.trim()).not.toBe('');
    });
  });
}
