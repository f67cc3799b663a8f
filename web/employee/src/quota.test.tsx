// @vitest-environment happy-dom
// The bar of the daily tokens and the words beside it say the same: what is left.
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { I18nProvider } from '@tidepool/shared/i18n/i18n';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it, vi } from 'vitest';
import { QuotaBar } from './chat/view/quota-bar';
import { dictionaries } from './messages';
import { en } from './messages/en';
import { PROFILE, type Profile } from './profile-query';
import { Quota } from './quota';

vi.mock('./api', () => ({ api: {} }));

function drawn(used_today: number) {
  const profile = { quota_daily: 1000, used_today, quota_resets_at: '2026-11-20T00:00:00Z' } as Profile;
  const client = new QueryClient();
  client.setQueryData(PROFILE, profile);
  const holder = document.createElement('div');
  holder.innerHTML = renderToStaticMarkup(
    <QueryClientProvider client={client}>
      <I18nProvider dictionaries={dictionaries} initial={{ language: 'en', messages: en }}>
        <QuotaBar />
        <Quota profile={profile} />
      </I18nProvider>
    </QueryClientProvider>,
  );
  const meters = [...holder.querySelectorAll('[role=meter]')];
  expect(meters).toHaveLength(2);
  return {
    words: holder.textContent,
    now: meters.map((meter) => meter.getAttribute('aria-valuenow')),
    texts: meters.map((meter) => meter.getAttribute('aria-valuetext')),
    bars: meters.map((meter) => meter.firstElementChild?.getAttribute('style')),
    colours: meters.map((meter) => /bg-(accent|warning|danger)/.exec(meter.innerHTML)?.[1]),
  };
}

it.each([
  [0, '1000', '1,000 of 1,000 tokens left', 'width:100%', 'accent'],
  [750, '250', '250 of 1,000 tokens left', 'width:25%', 'accent'],
  [900, '100', '100 of 1,000 tokens left', 'width:10%', 'warning'],
  [1200, '0', '0 of 1,000 tokens left', 'width:0%', 'danger'],
])('%i of 1,000 used', (used, now, text, width, colour) => {
  const { words, ...meters } = drawn(used);
  expect(meters).toEqual({
    now: [now, now],
    texts: [text, text],
    bars: [width, width],
    colours: [colour, colour],
  });
  expect(words).toContain(used < 1000 ? 'left' : en['quota.spent']);
});
