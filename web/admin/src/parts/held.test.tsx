// @vitest-environment happy-dom
// The badge of a held instance says until when; others have none.
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { dictionaries } from '../messages';
import { en } from '../messages/en';
import { HeldBadge } from './held';

const draw = (held_until: string | null) =>
  renderToStaticMarkup(
    <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
      <HeldBadge instance={{ held_until }} />
    </I18nProvider>,
  );

it('says until when', () => {
  expect(draw('2026-06-10T12:00:00Z')).toMatch(/title="Held until [^"]*2026[^"]*".*>held</);
});

it('is not there otherwise', () => {
  expect(draw(null)).toBe('');
});
