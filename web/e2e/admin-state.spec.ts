// An instance beside its records: what is on its (simulated) server, a hold and its end, and what is asked before a restart.
import { expect, expectAccessibleInBothThemes, openSignedIn, test } from './fixtures';

test('an instance is compared with our records, held and let go', async ({ page, demo, app }) => {
  await page.setViewportSize({ width: 375, height: 812 });
  await openSignedIn(page, app, demo, '/instances?open=fra-2-d&tab=state');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 2 D' });
  const rows = panel.getByRole('list', { name: 'Records and server' }).getByRole('listitem');
  await expect(rows.first()).toContainText('On the server: runs');
  // The bar of tabs scrolls; what is below it does not.
  const wide = await panel.getByRole('tabpanel').evaluate((body) => body.scrollWidth - body.clientWidth);
  expect(wide).toBe(0);

  await panel.getByRole('button', { name: 'Hold…' }).click();
  const form = page.getByRole('dialog', { name: 'Hold Frankfurt 2 D?' });
  await form.getByLabel('Until when').selectOption({ label: 'For 1 hour' });
  const submit = form.getByRole('button', { name: 'Hold', exact: true });
  await submit.click();
  await expect(form.getByRole('alert')).toHaveText('Say why, so that others know when it may end.');
  await form.getByLabel('Reason').fill('We look for a leak');
  await submit.click();
  await expect(form).toHaveCount(0);
  await expect(panel.getByText(/^Asked for by .+: We look for a leak$/)).toBeVisible();
  const badge = panel.getByText('held', { exact: true });
  await expect(badge).toBeVisible();
  await expectAccessibleInBothThemes(page);
  const until = async () =>
    ((await demo.asAdmin('GET', '/instances/fra-2-d')) as { held_until: string | null }).held_until;
  expect(Date.parse((await until()) ?? '')).toBeGreaterThan(Date.now());

  await panel.getByRole('button', { name: 'End the hold' }).click();
  await expect(badge).toHaveCount(0);
  expect(await until()).toBeNull();
});

test('what needs a restart is brought after a question', async ({ page, demo, app }) => {
  await page.route('**/instances/fra-2-d/state', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { data: { fields: unknown[] } };
    body.data.fields.push({ name: 'gateway.port', desired: '1', observed: '2', effect: 'restart' });
    await route.fulfill({ response: answer, json: body });
  });
  await openSignedIn(page, app, demo, '/instances?open=fra-2-d&tab=state');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 2 D' });
  await expect(panel.getByRole('listitem').filter({ hasText: 'gateway.port' })).toContainText(
    'The assistant must be restarted for it.',
  );
  await panel.getByRole('button', { name: 'Bring it now, with a restart' }).click();
  const question = page.getByRole('dialog', { name: 'Bring what our records want to Frankfurt 2 D?' });
  await expect(question.getByText(/^The assistant is restarted/)).toBeVisible();
  await question.getByRole('button', { name: 'Bring it now, with a restart' }).click();
  await expect(page.getByText('Queued: what our records want is brought to Frankfurt 2 D')).toBeVisible();
  await page.unrouteAll({ behavior: 'wait' });
});
