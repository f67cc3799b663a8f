// The console's forms, in both languages: a number that cannot be read is refused at its field, no limit is a choice, and
// secrets are only removed by an action that asks first.
import { expect, expectAccessibleInBothThemes, openSignedIn, test } from './fixtures';

const TEXTS = {
  en: {
    edit: 'Edit',
    quota: 'Daily quota',
    noLimit: 'No limit',
    save: 'Save',
    notANumber: /^This is not a number\./,
    ambiguous: /^This can be read in two ways\./,
    notWhole: 'Enter a whole number.',
    missing: 'Enter a number, or choose “No limit”.',
  },
  zh: {
    edit: '编辑',
    quota: '每日配额',
    noLimit: '不限',
    save: '保存',
    notANumber: /^这不是数字。/,
    ambiguous: /^这个数字有两种读法。/,
    notWhole: '请输入整数。',
    missing: '请输入数字，或选择“不限”。',
  },
} as const;

for (const language of ['en', 'zh'] as const) {
  test(`a quota that cannot be read is refused at its field, in ${language}`, async ({ page, demo, app }) => {
    const text = TEXTS[language];
    const email = `quota-${language}@example.test`;
    const { id } = (await demo.asAdmin('POST', '/users', { email, name: 'Quota', quota_daily: 5000 })) as {
      id: string;
    };
    const stored = async () =>
      ((await demo.asAdmin('GET', `/users/${id}`)) as { quota_daily: number }).quota_daily;
    await page.addInitScript((value) => localStorage.setItem('tidepool.language', value), language);
    await openSignedIn(page, app, demo, `/users?open=${id}`);
    await page.getByRole('dialog').getByRole('button', { name: text.edit, exact: true }).click();
    const form = page.getByRole('dialog').last();
    const quota = form.getByLabel(text.quota);
    const noLimit = form.getByRole('checkbox', { name: text.noLimit });
    const save = form.getByRole('button', { name: text.save });
    await expect(quota).toHaveValue('5000');
    await expect(noLimit).not.toBeChecked();

    const refused: [string, string | RegExp][] = [
      ['abc', text.notANumber],
      ['100k', text.notANumber],
      ['1.000', text.ambiguous],
      ['1.5', text.notWhole],
      ['', text.missing],
    ];
    for (const [typed, problem] of refused) {
      await quota.fill(typed);
      await save.click();
      await expect(form.getByRole('alert')).toHaveText(problem);
      await expect(quota).toBeFocused();
      await expect(quota).toHaveAttribute('aria-invalid', 'true');
    }
    await expectAccessibleInBothThemes(page);
    expect(await stored()).toBe(5000);

    await quota.fill('1,000');
    await save.click();
    await expect(form.getByRole('alert')).toHaveCount(0);
    await expect.poll(stored).toBe(1000);

    // By keyboard: the choice follows its field, and typing a number takes it back.
    await page.getByRole('dialog').getByRole('button', { name: text.edit, exact: true }).click();
    await quota.focus();
    await page.keyboard.press('Tab');
    await expect(noLimit).toBeFocused();
    await page.keyboard.press('Space');
    await expect(noLimit).toBeChecked();
    await expect(quota).toHaveValue('');
    await quota.fill('7');
    await expect(noLimit).not.toBeChecked();
    await noLimit.check();
    await save.click();
    await expect.poll(stored).toBe(0);
  });
}

test('an emptied price is refused, and so is a key’s limit that is no number', async ({
  page,
  demo,
  app,
}) => {
  await openSignedIn(page, app, demo, '/keys?tab=models');
  const button = page.getByRole('button', { name: /^Price of/ }).first();
  const before = await button.textContent();
  await button.click();
  const form = page.getByRole('dialog', { name: /^Price of/ });
  await form.getByLabel('US dollars per 1,000 tokens').fill('');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByRole('alert')).toHaveText('Enter a number.');
  await page.keyboard.press('Escape');
  await expect(button).toHaveText(before ?? '');

  await openSignedIn(page, app, demo, '/keys');
  const { total } = (await demo.asAdmin('GET', '/keys')) as { total: number };
  await page.getByRole('button', { name: 'New key' }).click();
  const key = page.getByRole('dialog', { name: 'New key' });
  await expect(key.getByRole('checkbox', { name: 'No limit' })).toBeChecked();
  await key.getByLabel('Or a name of its own').fill('unreadable-limit');
  await key.getByLabel('Limit in US dollars').fill('10k');
  await key.getByRole('button', { name: 'New key' }).click();
  await expect(key.getByRole('alert')).toHaveText(/^This is not a number\./);
  expect(((await demo.asAdmin('GET', '/keys')) as { total: number }).total).toBe(total);
});

test('a webhook is removed by its own action, not by an emptied field', async ({ page, demo, app }) => {
  const rule = async () => {
    const { list } = (await demo.asAdmin('GET', '/alerts/rules')) as {
      list: { id: string; channel: string | null }[];
    };
    return list.find(({ id }) => id === 'task_dead');
  };
  const channel = 'https://hooks.example.com/forms';
  // Off, so that nothing is sent there.
  await demo.asAdmin('PUT', '/alerts/rules/task_dead', { enabled: false, channel });
  await openSignedIn(page, app, demo, '/guardian?tab=alerts');
  const row = page.getByRole('listitem').filter({ hasText: channel });
  await row.getByRole('button', { name: 'Edit' }).click();
  const form = page.getByRole('dialog', { name: 'A task was given up' });
  await form.getByLabel('Webhook').fill('');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByRole('alert')).toContainText('choose “Remove webhook”');
  await page.keyboard.press('Escape');
  expect(await rule()).toMatchObject({ channel });

  await row.getByRole('button', { name: 'Remove webhook' }).click();
  const asking = page.getByRole('dialog', { name: 'Remove the webhook of “A task was given up”?' });
  await expect(asking.getByText(/signing secret is deleted/)).toBeVisible();
  await asking.getByRole('button', { name: 'Remove webhook' }).click();
  await expect(row).toHaveCount(0);
  expect(await rule()).toMatchObject({ channel: null });
});
