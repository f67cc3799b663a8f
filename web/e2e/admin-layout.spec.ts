// What the console looks like with the demo's records: nothing is cut, broken in the middle of a word or out of sight.
import type { Locator } from '@playwright/test';
import { expect, openPlace, openSignedIn, test } from './fixtures';

/** How many lines each part of a text takes. */
function linesOf(place: Locator): Promise<number[]> {
  return place.evaluate((element) =>
    [...element.childNodes]
      .filter((node) => node.nodeType === Node.TEXT_NODE)
      .map((node) => {
        const range = document.createRange();
        range.selectNode(node);
        return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
      }),
  );
}

test('long details of the audit log stay inside their table', async ({ page, demo, app }) => {
  // The demo's instances are being set up when it starts.
  await expect(async () => {
    const { total } = (await demo.asAdmin('GET', '/audit-logs?q=gateway.mode')) as { total: number };
    expect(total).toBeGreaterThan(0);
  }).toPass({ timeout: 30_000 });
  await openSignedIn(page, app, demo, '/audit?action=instance.update');
  const table = page.getByRole('region', { name: 'Audit' });
  await expect(table.getByText('gateway.mode').first()).toBeVisible();
  expect(await table.evaluate((box) => box.scrollWidth - box.clientWidth)).toBe(0);
});

test('on a phone what can be done with chosen rows stays in sight', async ({ page, demo, app }) => {
  await page.setViewportSize({ width: 375, height: 812 });
  await openSignedIn(page, app, demo, '/instances');
  await page.getByRole('checkbox', { name: 'Select lis-1-c' }).check();
  await expect(page.getByRole('toolbar', { name: '1 selected' })).toBeInViewport({ ratio: 1 });
  await expect(page.getByRole('button', { name: 'Restart', exact: true })).toBeInViewport({ ratio: 1 });
});

test('on a phone a preview breaks no name in the middle of a word', async ({ page, demo, app }) => {
  await page.setViewportSize({ width: 375, height: 812 });
  await openSignedIn(page, app, demo, '/instances?open=fra-1-a');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 1 A' });
  await panel.getByRole('button', { name: 'Actions for Frankfurt 1 A' }).click();
  await page.getByRole('menuitem', { name: 'Restart' }).click();
  const name = page.getByRole('dialog', { name: 'Restart' }).getByText('Frankfurt 1 A (fra-1-a)');
  const box = await name.boundingBox();
  expect(box?.height).toBeLessThan(30);
});

test('an address that has no room goes on after its "@"', async ({ page, demo, app }) => {
  await page.setViewportSize({ width: 320, height: 812 });
  await openSignedIn(page, app, demo, '/instances');
  const address = page.getByText('jonas@demo.example');
  expect(await linesOf(address)).toEqual([1, 1]);
});

test('what opens over a panel dims it', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo, '/instances?open=fra-1-a');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 1 A' });
  await panel.getByRole('button', { name: 'Actions for Frankfurt 1 A' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await expect(page.getByRole('dialog', { name: 'Delete Frankfurt 1 A?' })).toBeVisible();
  const top = await page.evaluate(() => {
    const panel = document.querySelector<HTMLElement>('[role=dialog]');
    if (panel === null) return 'no panel';
    // It answers nothing meanwhile; here the question is what lies over what.
    panel.style.pointerEvents = 'auto';
    const { right, top } = panel.getBoundingClientRect();
    return document.elementFromPoint(right - 200, top + 30)?.closest('[role=dialog]')?.id ?? null;
  });
  expect(top).toBeNull();
});

test('numbers say what they count', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo, '/guardian?tab=alerts');
  const rule = (name: string) => page.getByRole('listitem').filter({ hasText: name });
  await expect(rule('Key balance is low')).toContainText('below $5');
  await expect(rule('Budget is near its limit')).toContainText('from 80 %');
  await openPlace(page, app, '/settings');
  await expect(page.getByRole('listitem').filter({ hasText: 'admin@demo.example' })).toContainText(
    /Signed in (now|.+ ago)/,
  );
  await openPlace(page, app, '/instances?open=fra-1-a&tab=usage');
  await expect(
    page
      .getByRole('dialog')
      .getByText(/K? in, \d+ out · [\d.]+ s/)
      .first(),
  ).toBeVisible();
  // Whoever had it is a person, not an id.
  await page.getByRole('tab', { name: 'Overview' }).click();
  await expect(page.getByText('Who has had it').locator('..').getByRole('link')).toHaveText(
    'sofia@demo.example',
  );
});

test('a task is called by words, and who started it is whole', async ({ page, demo, app }) => {
  await page.setViewportSize({ width: 320, height: 812 });
  await demo.asAdmin('PATCH', '/instances/lis-1-a/config', { config_json: '{"ui":{"colour":"blue"}}' });
  await openSignedIn(page, app, demo, '/tasks?q=lis-1-a');
  await expect(page.getByRole('button', { name: 'Write the configuration' })).toBeVisible();
  expect(await linesOf(page.getByRole('main').getByText('admin@demo.example').first())).toEqual([1, 1]);
  await expect(page.getByRole('main').getByText('The platform').first()).toBeVisible();
  await page.getByRole('button', { name: 'Write the configuration' }).first().click();
  await page
    .getByRole('dialog', { name: 'Write the configuration' })
    .getByRole('link', { name: 'lis-1-a' })
    .click();
  await expect(page.getByRole('dialog', { name: 'Lisbon 1 A' })).toBeVisible();
});

test('a request reads from left to right', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo, '/instances?open=fra-1-a&tab=usage');
  const first = page.getByRole('dialog').getByRole('listitem').first();
  const model = await first.getByText('claude-sonnet-4-6').boundingBox();
  const tokens = await first.getByText(/ in, /).boundingBox();
  expect(model?.x).toBeLessThan(tokens?.x ?? 0);
});

test('on a phone a rule and its button stand in one line', async ({ page, demo, app }) => {
  await page.setViewportSize({ width: 375, height: 812 });
  await openSignedIn(page, app, demo, '/guardian?tab=alerts');
  const rule = page.getByRole('listitem').filter({ hasText: 'Instances are unhealthyfrom 1' });
  const [whole, edit] = await Promise.all([rule.boundingBox(), rule.getByRole('button').boundingBox()]);
  expect(whole?.height).toBeLessThan(70);
  expect(edit?.x).toBeGreaterThan(250);
});
