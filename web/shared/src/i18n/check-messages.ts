// The test both apps and the shared code run over their texts.
import { describe, expect, it } from 'vitest';
import { placeholders, pluralForms, type Messages } from './translate';

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
    it('have full-width punctuation in Chinese', () => {
      const half = /[\u4e00-\u9fff] ?[,;:!?()]|[,;:!?(] ?[\u4e00-\u9fff]/;
      expect(Object.entries(zh).filter(([, text]) => half.test(text))).toEqual([]);
    });
    it.each([
      ['en', en],
      ['zh', zh],
    ])('have in %s a form for each of its plural categories', (language, messages) => {
      const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories.sort();
      const forms = Object.entries(messages).map(([key, text]) => [key, pluralForms(text)] as const);
      expect(forms.filter(([, all]) => all.some((one) => one.join() !== categories.join()))).toEqual([]);
      // A construct that is misspelt would be shown as it is.
      expect(
        Object.values(messages).filter(
          (text) => text.includes(', plural,') && pluralForms(text).length === 0,
        ),
      ).toEqual([]);
    });
  });
}
