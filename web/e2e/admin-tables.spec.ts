// What every list of the console can do, with the demo's records: cards that lead to just their rows, columns to choose,
// a file of all rows, Ctrl+K to any record; and what a plain administrator is not offered.
import { readFileSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { expect, openPlace, openSignedIn, test, textsOf } from './fixtures';

const TABLES = [
  '/instances',
  '/servers',
  '/users',
  '/professions',
  '/professions?tab=pool',
  '/professions?tab=claims',
  '/keys',
  '/marketplace',
  '/requests',
  '/audit',
  '/tasks',
  '/guardian',
];

/** How many rows the list says it has. */
async function total(page: Page): Promise<number> {
  const pager = page.getByText(/^\d+–\d+ of [\d,]+/);
  await expect(pager.or(page.getByText('Nothing matches')).first()).toBeVisible();
  if ((await pager.count()) === 0) return 0;
  return Number(/of ([\d,]+)/.exec(await pager.innerText())?.[1]?.replaceAll(',', ''));
}

test('every number of the overview leads to a list of as many', async ({ page, demo, app }) => {
  test.setTimeout(120_000);
  await openSignedIn(page, app, demo);
  // Everything was checked once, and nothing is under way.
  await expect(page.getByRole('link', { name: /^Unknown/ })).toHaveText('Unknown0', { timeout: 60_000 });
  for (const name of ['0 Waiting', '0 Running'])
    await expect(page.getByRole('link', { name })).toBeVisible({ timeout: 30_000 });
  await expect(page.getByRole('link', { name: /of \d+ ready/ }).first()).toBeVisible();
  await expect(page.getByRole('link', { name: /^Free/ })).toHaveText(/\d/);
  const links = await page
    .getByRole('main')
    .getByRole('link')
    .evaluateAll((all) =>
      all.map((link) => ({ href: link.getAttribute('href') ?? '', text: link.textContent.trim() })),
    );
  const narrowed = links.filter(({ href }) =>
    /[?&](status|health_status|assigned|profession_id)=/.test(href),
  );
  // Five of health and the free ones, two of employees, four of tasks, one for each profession.
  expect(narrowed).toHaveLength(16);
  const countIn = (text: string) => Number(/of (\d+) ready/.exec(text)?.[1] ?? text.replace(/\D/g, ''));
  for (const { href, text } of narrowed) {
    let count = countIn(text);
    const { pathname, search } = new URL(href, app.url);
    // A job may change a number while the others are visited: then the overview says another one, too.
    await expect(async () => {
      await openPlace(page, app, pathname + search);
      await expect(page.getByRole('button', { name: 'Clear filters' }).first()).toBeVisible();
      const rows = await total(page);
      if (rows !== count) {
        await openPlace(page, app, '/');
        const link = page.getByRole('main').locator(`a[href="${href}"]`);
        await expect(link).toHaveText(/\d/);
        count = countIn(await link.innerText());
      }
      expect(rows, `${text} ${href}`).toBe(count);
    }).toPass({ timeout: 30_000 });
  }
  // The others lead to a page that is about what they show.
  const others = new Set(links.filter((link) => !narrowed.includes(link)).map(({ href }) => href));
  expect([...others].sort()).toEqual(
    [
      '/instances',
      '/jobs?job_name=llm_self_heal',
      '/professions',
      '/tasks',
      '/usage',
      '/usage?by=provider',
      '/usage?days=1',
      '/users',
    ].sort(),
  );
  await openPlace(page, app, '/usage?days=1');
  await expect(page.getByRole('radio', { name: 'Today' })).toBeChecked();
  await openPlace(page, app, '/usage?by=provider');
  await expect(page.getByRole('combobox', { name: 'Split by' })).toHaveValue('provider');
  await openPlace(page, app, '/jobs?job_name=llm_self_heal');
  await expect(page.getByRole('heading', { name: 'Runs of Self-heal' })).toBeVisible();
});

for (const place of TABLES)
  test(`${place} has columns to choose and a file of all its rows`, async ({ page, demo, app }) => {
    await openSignedIn(page, app, demo, place);
    // Some columns are there for who may act: who that is comes with the name.
    await expect(page.getByRole('button', { name: /^Account menu: / })).toBeVisible();
    const heads = page.getByRole('columnheader');
    await expect(heads.nth(2)).toBeVisible();
    const before = await textsOf(heads);
    await page.getByRole('button', { name: 'Columns' }).click();
    const column = page.getByRole('menuitemcheckbox', { checked: true }).last();
    const name = await column.innerText();
    await column.click();
    await page.keyboard.press('Escape');
    await expect(page.getByRole('columnheader', { name, exact: true })).toHaveCount(0);
    await page.reload();
    await expect(heads).toHaveText(before.filter((one) => one !== name));
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('menuitemcheckbox', { name, exact: true }).click();
    await page.keyboard.press('Escape');
    await expect(heads).toHaveText(before);

    // A row that is written between the list and the file comes into the list a moment later: then both are read again.
    await expect(async () => {
      const saved = page.waitForEvent('download', { timeout: 10_000 });
      await page.getByRole('button', { name: 'Export as CSV' }).click();
      const text = readFileSync(await (await saved).path(), 'utf8');
      // A line break within quotes is a cell's own.
      const lines = text
        .trim()
        .replace(/"(?:[^"]|"")*"/g, '')
        .split(/\r?\n/);
      expect(lines.length - 1).toBeGreaterThan(0);
      // Some are written to all the time.
      expect(Math.abs(lines.length - 1 - (await total(page)))).toBeLessThanOrEqual(
        ['/audit', '/guardian'].includes(place) ? 15 : 0,
      );
    }).toPass({ timeout: 30_000 });
  });

test('Ctrl+K leads to a user, an instance, a server and a task, and acts', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo);
  const find = async (text: string, option: RegExp) => {
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill(text);
    await page.getByRole('option', { name: option }).first().click();
  };
  await find('wei@', /Wei Chen/);
  await expect(page.getByRole('dialog', { name: 'Wei Chen' })).toBeVisible();
  await page.keyboard.press('Escape');
  await find('fra-2-b', /Frankfurt 2 B/);
  await expect(page.getByRole('dialog', { name: 'Frankfurt 2 B' })).toBeVisible();
  await page.keyboard.press('Escape');
  await find('lisbon', /^Lisbon 1\s*127/);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Lisbon 1');
  await find('lis-1-b', /Provision/);
  await expect(page.getByRole('dialog', { name: 'Provision' })).toBeVisible();
  await page.keyboard.press('Escape');
  await find('request', /Request log/);
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Request log');
  await find('import', /Import from CSV/);
  await expect(page.getByRole('dialog', { name: 'Import from CSV' })).toBeVisible();
  await page.keyboard.press('Escape');
  await find('dark', /dark/i);
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});

test('a plain administrator is offered no action of super administrators, on any page', async ({
  page,
  demo,
  app,
}) => {
  const account = { email: 'plain@example.test', password: 'plain-sailing-12' };
  await demo.asAdmin('POST', '/admin-users', { ...account, name: 'Plain', role: 'admin' });
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  const plain = { ...app, account };
  await openSignedIn(page, plain, demo, '/guardian?tab=alerts');
  await expect(page.getByText('Key balance is low')).toBeVisible();
  await expect(page.getByRole('main').getByRole('button', { name: 'Edit' })).toHaveCount(0);
  await openPlace(page, plain, '/settings');
  await expect(page.getByText('Super administrators manage this list.')).toBeVisible();
  await expect(page.getByRole('main').getByRole('button')).toHaveCount(0);
  await openPlace(page, plain, '/servers/fra-1');
  await expect(page.getByRole('button', { name: /Edit|Prepare|More actions/ })).toHaveCount(0);
  // The platform's own key has no instance; an instance's key is anybody's.
  await openPlace(page, plain, '/keys');
  const actions = async (key: string) => {
    await page
      .getByRole('row', { name: new RegExp(key) })
      .getByRole('button', { name: /^Actions/ })
      .click();
    const names = await textsOf(page.getByRole('menuitem'));
    await page.keyboard.press('Escape');
    return names;
  };
  expect(await actions('admin-token')).not.toContain('Delete');
  expect(await actions('fra-1-a')).toContain('Delete');
  for (const place of TABLES) await openPlace(page, plain, place);
  expect(refused).toEqual([]);
});
