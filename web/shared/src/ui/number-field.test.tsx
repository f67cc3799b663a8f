// @vitest-environment happy-dom
// A number field shows its number, and no number as a choice that says which field it belongs to.
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { en } from '../i18n/en';
import { I18nProvider } from '../i18n/i18n';
import { NumberField } from './number-field';

const dictionaries = { en, load: { zh: () => Promise.resolve(en) } };
const RANGE = { min: 0, max: 10, decimals: 9 };

function draw(value: number | null, none?: string) {
  const holder = document.createElement('div');
  holder.innerHTML = renderToStaticMarkup(
    <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
      <NumberField label="Price" name="price" spec={{ ...RANGE, none }} value={value} error="Too much." />
    </I18nProvider>,
  );
  const input = holder.querySelector<HTMLInputElement>('input[name=price]');
  const box = holder.querySelector<HTMLInputElement>('input[name=price_none]');
  const textOf = (id: string | null | undefined) => holder.querySelector(`[id="${id ?? ''}"]`)?.textContent;
  return { input, box, textOf, holder };
}

it('writes small numbers in digits, and names its problem', () => {
  const { input, box, textOf } = draw(0.0000005);
  expect(input?.value).toBe('0.0000005');
  expect(input?.inputMode).toBe('decimal');
  expect(textOf(input?.getAttribute('aria-describedby'))).toBe('Too much.');
  expect(box).toBeNull();
});

it('begins with no number where there is none, and zero is a number', () => {
  const { box, input, textOf, holder } = draw(null, 'No limit');
  expect(box?.checked).toBe(true);
  expect(input?.value).toBe('');
  expect(holder.querySelector(`label[for="${box?.id ?? ''}"]`)?.textContent).toBe('No limit');
  expect(textOf(box?.getAttribute('aria-describedby'))).toBe('Price');
  expect(draw(0, 'No limit').box?.checked).toBe(false);
  expect(draw(0, 'No limit').input?.value).toBe('0');
});
