// The cell of an instance in the console: how it is confined, what it may take of its server, who may let it out.
import { expect, expectAccessibleInBothThemes, openPlace, openSignedIn, test } from './fixtures';

/** A fact's value, by its name. */
const FACT = (name: string) => new RegExp(`^${name}`);

test('a limit of one instance is changed, and what holds is shown', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo, '/instances?open=fra-2-d&tab=cell');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 2 D' });
  const fact = (name: string) =>
    panel.locator('dl > div').filter({ has: page.getByText(name, { exact: true }) });
  await expect(fact('State')).toContainText('Confined');
  await expect(fact('Score')).toContainText(/systemd-analyze security: \d\.\d of 10, lower is safer/);
  await expect(fact('Memory')).toHaveText(FACT('Memory2 GiB.*from the platform'));

  const change = panel.getByRole('button', { name: 'Change limits' });
  await change.click();
  const form = page.getByRole('dialog', { name: 'Limits of Frankfurt 2 D' });
  const memory = form.getByLabel('Memory in MiB');
  await expect(memory).toBeFocused();
  await expect(memory).toHaveAttribute('placeholder', '2048');
  const notSet = form.getByRole('checkbox', { name: 'Not set' });
  await expect(notSet).toHaveCount(4);
  await expect(notSet.first()).toBeChecked();
  await expect(notSet.first()).toHaveAccessibleDescription('Memory in MiB');

  // What is no number is refused where it stands, and nothing is sent.
  await memory.fill('3 GB');
  await form.getByLabel('Processes and threads').fill('1');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(memory).toBeFocused();
  await expect(memory).toHaveAccessibleDescription(
    /This is not a number\. Write it in digits, such as 1000 or 1,000\.$/,
  );
  await expect(form.getByText('It must be from 64 to 1,000,000.')).toBeVisible();
  await expectAccessibleInBothThemes(page);

  await memory.fill('3,072');
  await notSet.nth(2).check();
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form).toHaveCount(0);
  await expect(fact('Memory')).toHaveText(FACT('Memory3 GiB.*its own'));
  await expect(fact('Processes')).toContainText('512 processes and threads');
  expect(await demo.asAdmin('GET', '/instances/fra-2-d/cell')).toMatchObject({
    limits: { memory_mib: 3072, tasks: 512 },
    own_limits: { memory_mib: 3072, cpu_percent: null, tasks: null, disk_mib: null },
  });

  // An empty field does not take it back; the choice beside it does.
  await change.click();
  await expect(memory).toHaveValue('3072');
  await expect(memory).toHaveAttribute('placeholder', '2048');
  await memory.fill('');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByText('Enter a number, or choose “Not set”.')).toBeVisible();
  await notSet.first().check();
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(fact('Memory')).toHaveText(FACT('Memory2 GiB.*from the platform'));
});

test('limits of a server and of a profession hold for their instances', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo, '/servers/fra-2');
  const card = page.getByRole('region', { name: 'Limits for assistants on this server' });
  await card.getByRole('button', { name: 'Change' }).click();
  const form = page.getByRole('dialog', { name: 'Limits of Frankfurt 2' });
  await form.getByLabel('Disk in MiB').fill('20480');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(card.getByText('20 GiB')).toBeVisible();
  await openPlace(page, app, '/instances?open=fra-2-a&tab=cell');
  await expect(page.getByText('of 20 GiB')).toBeVisible();
  await expect(page.getByText('from its server')).toBeVisible();

  await openPlace(page, app, '/professions');
  const menu = page.getByRole('button', { name: /^Actions for/ }).first();
  await menu.click();
  await page.getByRole('menuitem', { name: 'Limits' }).click();
  const profession = page.getByRole('dialog', { name: /^Limits of/ });
  const tasks = profession.getByLabel('Processes and threads');
  await expect(tasks).toHaveAttribute('placeholder', 'as its server says');
  await tasks.fill('900');
  await profession.getByRole('button', { name: 'Save' }).click();
  await expect(profession).toHaveCount(0);
  const saved = (await demo.asAdmin('GET', '/professions')) as { list: { id: string }[] };
  const limits = saved.list.map(({ id }) => demo.asAdmin('GET', `/professions/${id}/limits`));
  expect(await Promise.all(limits)).toContainEqual(expect.objectContaining({ tasks: 900 }));
});

test('super administrators alone open a cell or let an instance out', async ({ page, demo, app }) => {
  await page.setViewportSize({ width: 375, height: 812 });
  await openSignedIn(page, app, demo, '/instances?open=fra-1-d&tab=cell');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 1 D' });
  // The bar of tabs scrolls; what is below it does not.
  await expect(panel.getByRole('button', { name: 'Change limits' })).toBeVisible();
  const wide = await panel.getByRole('tabpanel').evaluate((body) => body.scrollWidth - body.clientWidth);
  expect(wide).toBe(0);
  await panel.getByRole('button', { name: 'Change openings' }).click();
  const openings = page.getByRole('dialog', { name: /leaves open$/ });
  await expect(openings.getByText(/All but the browser make it count as root/)).toBeVisible();
  await expect(openings.getByRole('checkbox')).toHaveCount(4);
  await page.keyboard.press('Escape');
  await panel.getByRole('button', { name: 'Take out of its cell' }).click();
  await expect(page.getByRole('dialog', { name: 'Take Frankfurt 1 D out of its cell?' })).toBeVisible();
  await page.keyboard.press('Escape');

  const account = { email: 'warden@example.test', password: 'plain-sailing-12' };
  await demo.asAdmin('POST', '/admin-users', { ...account, name: 'Warden', role: 'admin' });
  await openSignedIn(page, { ...app, account }, demo, '/instances?open=fra-1-d&tab=cell');
  await expect(panel.getByRole('button', { name: 'Change limits' })).toBeVisible();
  await expect(panel.getByText('Confined', { exact: true })).toBeVisible();
  await expect(panel.getByRole('button', { name: /openings|out of its cell/ })).toHaveCount(0);
});

test('an instance that left its cell is shown as unconfined, and brought back', async ({
  page,
  demo,
  app,
}) => {
  const cell = async () => ((await demo.asAdmin('GET', '/instances/lis-1-a')) as { cell: string }).cell;
  await demo.asAdmin('POST', '/instances/lis-1-a/cell/leave');
  await expect.poll(cell, { timeout: 30_000 }).toBe('unconfined');
  await openSignedIn(page, app, demo, '/instances');
  const row = page.getByRole('row').filter({ hasText: 'lis-1-a' });
  await expect(row.getByText('unconfined')).toBeVisible();

  for (const id of ['lis-1-a', 'lis-1-b']) await page.getByRole('checkbox', { name: `Select ${id}` }).check();
  await page.getByRole('button', { name: 'Bring into cells' }).click();
  const batch = page.getByRole('dialog', { name: 'Bring into cells' });
  await expect(batch.getByText('1 affected, 1 left out.')).toBeVisible();
  await expect(batch.getByRole('listitem').filter({ hasText: 'lis-1-b' })).toContainText(
    'in its cell already',
  );
  await batch.getByRole('button', { name: 'Bring into cells (1)' }).click();
  await expect(batch.getByText('1 queued, 0 failed, 0 unknown, 0 to go.')).toBeVisible();
  await batch.getByRole('button', { name: 'Close' }).last().click();
  await expect.poll(cell, { timeout: 30_000 }).toBe('confined');
});
