// What an administrator does in the console: the first steps, batches with a preview, imports, deletions that ask first.
import { readFileSync } from 'node:fs';
import { addInstances, addServer } from './admin-fleet';
import { appOf, expect, logIn, openSignedIn, test, type AppUnderTest } from './fixtures';
import { Server } from './server';

test('the first-run path, from an empty database to the first employee', async ({ page, watch }) => {
  // This machine need not run containers.
  watch.allow(/status of (409|503) .*\/containers/);
  const fresh = await Server.start();
  try {
    await page.goto(fresh.adminUrl);
    await logIn(page, fresh.admin);
    const steps = page.getByRole('region', { name: 'First steps' });
    await expect(steps.getByText('A server is added')).toHaveText(/open/);

    await steps.getByRole('link', { name: 'Start' }).click();
    const form = page.getByRole('dialog', { name: 'Add a server' });
    await expect(form.getByLabel('Name')).toBeFocused();
    await form.getByLabel('Name').fill('Harbour');
    await form.getByLabel('Host', { exact: true }).fill('local');
    await form.getByRole('button', { name: 'Add a server' }).click();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Harbour');

    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await expect(steps.getByText('A server is added')).toHaveText(/done/);
    await expect(steps.getByText('SSH works')).toHaveText(/done/);

    await page.goto(`${fresh.adminUrl}/instances?new=1`);
    const instance = page.getByRole('dialog', { name: 'New instance' });
    await instance.getByLabel('Name').fill('Pearl');
    await instance.getByLabel('Id', { exact: true }).fill('pearl');
    await instance.getByLabel('Set it up on the server now').uncheck();
    await expect(instance.locator('select[name=server_id]')).not.toHaveValue('');
    await expect(instance.locator('select[name=model]')).not.toHaveValue('');
    await instance.getByRole('button', { name: 'Create' }).click();
    await expect(page.getByRole('dialog', { name: 'Pearl' })).toBeVisible();

    await page.goto(`${fresh.adminUrl}/users?new=1`);
    const user = page.getByRole('dialog', { name: 'Add an employee' });
    await user.getByLabel('E-mail').fill('first@example.test');
    await user.getByRole('button', { name: 'Add an employee' }).click();
    await expect(page.getByRole('table').getByText('first@example.test').first()).toBeVisible();

    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await expect(page.getByRole('heading', { name: 'Assistants' })).toBeVisible();
    await expect(steps).toHaveCount(0);
  } finally {
    // Its live events would break off.
    await page.goto('about:blank');
    await fresh.stop();
  }
});

test.describe('with a small fleet', () => {
  let small: Server;
  let app: AppUnderTest;

  test.beforeAll(async () => {
    small = await Server.start();
    await addServer(small, 'quay');
    await addInstances(small, 'quay', 6);
    await small.newEmployee();
    app = await appOf('admin', small);
  });

  test.afterAll(() => small.stop());

  test('a number on the overview leads to the list of just these', async ({ page }) => {
    await openSignedIn(page, app, small);
    await page.getByRole('link', { name: '0 Failed' }).click();
    await expect(page).toHaveURL(/\/tasks\?status=failed$/);
    await page.goBack();
    await page.getByRole('link', { name: '1 Active' }).click();
    await expect(page).toHaveURL(/\/users\?status=active$/);
    await expect(page.getByRole('table').getByText('mina1@example.test').first()).toBeVisible();
  });

  test('an exported audit log holds what the list shows', async ({ page }) => {
    await openSignedIn(page, app, small, '/audit?action=user.create&level=INFO&q=mina1');
    await expect(page.getByText('1–1 of 1')).toBeVisible();
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/audit-logs')) asked.push(new URL(request.url()).pathname);
    });
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'CSV' }).click();
    const lines = readFileSync(await (await saved).path(), 'utf8')
      .trim()
      .split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('user.create');
    expect(lines[1]).toContain('mina1@example.test');
    // One file of the server's, not one that the page puts together.
    expect(asked).toEqual(['/api/v1/audit-logs/export']);
  });

  test('live updates can be paused, and say so', async ({ page }) => {
    // The page's minutes pass when the test says so.
    await page.clock.install();
    await openSignedIn(page, app, small);
    await expect(page.getByRole('button', { name: 'Pause live updates' })).toContainText('Live');
    let asked = 0;
    page.on('request', (request) => {
      if (request.url().includes('/api/v1/instances')) asked += 1;
    });
    await page.clock.runFor(2 * 60_000);
    await expect.poll(() => asked).toBeGreaterThan(0);

    await page.getByRole('button', { name: 'Pause live updates' }).click();
    await expect(page.getByRole('button', { name: 'Resume live updates' })).toContainText('Paused');
    asked = 0;
    await page.clock.runFor(10 * 60_000);
    // Whatever those minutes asked for was asked for before this.
    const last = page.waitForRequest('**/api/v1/auth/options?last');
    await page.evaluate(() => fetch('/api/v1/auth/options?last'));
    await last;
    expect(asked).toBe(0);
    await page.getByRole('button', { name: 'Resume live updates' }).click();
    await expect.poll(() => asked).toBeGreaterThan(0);
  });

  test('a deletion says what it touches and asks for the name', async ({ page }) => {
    await openSignedIn(page, app, small, '/instances?open=a-0006');
    const panel = page.getByRole('dialog', { name: 'Assistant a 6' });
    await panel.getByRole('button', { name: 'Actions for Assistant a 6' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete Assistant a 6?' });
    await expect(dialog.getByText('It is stopped and removed on Server quay')).toBeVisible();
    const confirm = dialog.getByRole('button', { name: 'Delete' });
    await expect(confirm).toBeDisabled();
    await dialog.getByLabel('Type a-0006 to confirm').fill('a-000');
    await expect(confirm).toBeDisabled();
    await dialog.getByLabel('Type a-0006 to confirm').fill('a-0006');
    await confirm.click();
    await expect(page.getByText('Assistant a 6 is deleted.')).toBeVisible();
    await expect(page.getByRole('table').getByText('a-0006')).toHaveCount(0);
  });

  test('a batch shows what is affected and what is left out, then a result for each', async ({ page }) => {
    await openSignedIn(page, app, small, '/instances?sort=name');
    await page.getByRole('checkbox', { name: 'Select a-0001' }).check();
    await page.getByRole('checkbox', { name: 'Select a-0002' }).check();
    const bar = page.getByRole('toolbar', { name: '2 selected' });
    await bar.getByRole('button', { name: 'Assign' }).click();
    const dialog = page.getByRole('dialog', { name: 'Assign' });
    await expect(dialog.getByText('0 affected, 2 left out.')).toBeVisible();
    await dialog.getByLabel('E-mails, one per line').fill('mina1@example.test\nnobody@example.test');
    await expect(dialog.getByText('1 affected, 1 left out.')).toBeVisible();
    await expect(dialog.getByText('no active employee nobody@example.test')).toBeVisible();
    await dialog.getByRole('button', { name: /^Assign/ }).click();
    await expect(dialog.getByText('1 done, 0 failed, 0 unknown, 0 to go.')).toBeVisible();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await expect(page.getByRole('row', { name: /a-0001/ })).toContainText('mina1@example.test');
  });

  test('models are synced to chosen instances as tasks that can be watched', async ({ page }) => {
    await openSignedIn(page, app, small, '/instances?q=a-0003');
    await page.getByRole('checkbox', { name: 'Select a-0003' }).check();
    await page.getByRole('toolbar').getByRole('button', { name: 'Sync models' }).click();
    const dialog = page.getByRole('dialog', { name: 'Sync models' });
    await dialog.getByRole('button', { name: /^Sync models/ }).click();
    await expect(dialog.getByText('1 done, 0 failed, 0 unknown, 0 to go.')).toBeVisible();
    await dialog.getByRole('button', { name: 'Close' }).last().click();
    await page.goto(`${app.url}/tasks?q=a-0003`);
    await page.getByRole('button', { name: 'Sync models' }).first().click();
    const drawer = page.getByRole('dialog', { name: 'Sync models' });
    await expect(drawer.getByRole('heading', { name: 'Steps' })).toBeVisible();
    await expect(page).toHaveURL(/task=/);
    await page.keyboard.press('Escape');
    await expect(drawer).toBeHidden();
  });

  test('an import is tried before it is done', async ({ page }) => {
    await openSignedIn(page, app, small, '/users?import=1');
    const dialog = page.getByRole('dialog', { name: 'Import from CSV' });
    await dialog
      .getByLabel('Or paste lines')
      .fill(
        [
          'email,name,department,quota,profession',
          'new1@example.test,New One,Sales,5000,',
          'mina1@example.test,,Imported,,',
          'new2@example.test,New Two,Sales,,no-such-profession',
          'not-an-address,X,Y,,',
        ].join('\n'),
      );
    await dialog.getByRole('button', { name: 'Preview' }).click();
    const summary = '1 new, 1 changed, 0 unchanged, 2 refused.';
    await expect(dialog.getByText(summary)).toBeFocused();
    await expect(dialog.getByRole('row', { name: /new1@example\.test/ })).toContainText(
      'New One · Sales · 5,000 tokens per day · SSO only',
    );
    await expect(dialog.getByRole('row', { name: /mina1@example\.test/ })).toContainText('→ Imported');
    await expect(dialog.getByText('No profession has this code or name.')).toBeVisible();
    await expect(dialog.getByText('This is not an e-mail address.')).toBeVisible();
    const before = (await small.asAdmin('GET', '/users?q=new1')) as { total: number };
    expect(before.total).toBe(0);
    await dialog.getByRole('button', { name: 'Import (2)' }).click();
    await expect(dialog.getByText('This is what each line did.')).toBeVisible();
    await expect(dialog.getByText(summary)).toBeVisible();
    const after = (await small.asAdmin('GET', '/users?q=new1')) as { total: number };
    expect(after.total).toBe(1);
    const imported = (await small.asAdmin('GET', '/users?department=Imported')) as { total: number };
    expect(imported.total).toBe(1);
  });

  test('the preview of an import fits a telephone', async ({ page }) => {
    await page.setViewportSize({ width: 375, height: 700 });
    await openSignedIn(page, app, small, '/users?import=1');
    const dialog = page.getByRole('dialog', { name: 'Import from CSV' });
    const address = `${'long-address-without-a-break'.repeat(3)}@example.test`;
    await dialog.getByLabel('CSV file').setInputFiles({
      name: 'people.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(`\uFEFFE-Mail;Name;Quota\r\n${address};Somebody;ten\r\n`),
    });
    await expect(dialog.getByText('The quota must be a whole number; 0 means no limit.')).toBeVisible();
    const body = dialog.locator('[data-body]');
    expect(await body.evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
    await expect(dialog.getByRole('button', { name: 'Import (0)' })).toBeDisabled();
  });

  test('Ctrl+K leads to an instance, by keyboard alone', async ({ page }) => {
    await openSignedIn(page, app, small);
    await page.keyboard.press('Control+k');
    await expect(page.getByRole('combobox')).toBeFocused();
    await page.keyboard.type('a-0004');
    await expect(page.getByRole('option', { name: /Assistant a 4/ })).toHaveAttribute(
      'aria-selected',
      'true',
    );
    await page.keyboard.press('Enter');
    await expect(page.getByRole('dialog', { name: 'Assistant a 4' })).toBeVisible();
    await expect(page).toHaveURL(/open=a-0004/);
    await page.keyboard.press('Escape');
    await expect(page.getByRole('dialog')).toHaveCount(0);
  });

  test('a secret enters the page only when it is asked for, and that is recorded', async ({
    page,
    context,
  }) => {
    const { gateway_token: token } = (await small.asAdmin('GET', '/instances/a-0005')) as {
      gateway_token: string;
    };
    const entries = async () => {
      const found = await small.asAdmin('GET', '/audit-logs?action=secret.reveal&target=a-0005');
      return (found as { total: number }).total;
    };
    const before = await entries();
    const carriers: string[] = [];
    const bodies: Promise<unknown>[] = [];
    page.on('response', (response) => {
      const url = response.url();
      if (!url.includes('/api/v1/') || url.endsWith('/events')) return;
      const read = response.text().then(
        (body) => body.includes(token) && carriers.push(url),
        () => null,
      );
      bodies.push(read);
    });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await openSignedIn(page, app, small, '/instances?open=a-0005');
    const panel = page.getByRole('dialog', { name: 'Assistant a 5' });
    await expect(panel.getByText(`…${token.slice(-4)}`)).toBeVisible();
    await panel.getByRole('tab', { name: 'Audit' }).click();
    await expect(panel.getByText('instance.create')).toBeVisible();
    await panel.getByRole('tab', { name: 'Overview' }).click();
    await Promise.all(bodies);
    expect(bodies.length).toBeGreaterThan(3);
    expect(carriers).toEqual([]);
    expect(await page.content()).not.toContain(token);
    expect(await entries()).toBe(before);

    const show = panel.getByRole('button', { name: 'Show Gateway token' });
    await expect(show).toHaveAccessibleDescription('The audit log records who asks for it.');
    await show.click();
    await expect(panel.getByText(token)).toBeVisible();
    expect(await entries()).toBe(before + 1);
    await panel.getByRole('button', { name: 'Hide Gateway token' }).click();
    await expect(panel.getByText(token)).toHaveCount(0);

    await panel.getByRole('button', { name: 'Copy Gateway token' }).click();
    await expect(page.getByText('Copied.')).toBeVisible();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(token);
    expect(await page.content()).not.toContain(token);
    expect(await entries()).toBe(before + 2);

    // Closed and opened again, it is masked; and so it is a minute after it was shown.
    await panel.getByRole('button', { name: 'Show Gateway token' }).click();
    await expect(panel.getByText(token)).toBeVisible();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Assistant a 5/ }).click();
    await expect(panel.getByText(`…${token.slice(-4)}`)).toBeVisible();
    await page.clock.install();
    await panel.getByRole('button', { name: 'Show Gateway token' }).click();
    await expect(panel.getByText(token)).toBeVisible();
    // Its timer begins a moment after it is drawn.
    await expect(async () => {
      await page.clock.fastForward(61_000);
      await expect(panel.getByText(token)).toHaveCount(0, { timeout: 1000 });
    }).toPass();

    await openSignedIn(page, app, small, '/audit?action=secret.reveal&target=a-0005');
    await expect(page.getByRole('table').getByRole('row', { name: /secret\.reveal/ })).toHaveCount(
      before + 4,
    );
  });

  test('a plain administrator sees no action of super administrators', async ({ page, watch }) => {
    // Nobody has given this server a key to log in with.
    watch.allow(/status of 409 .*\/containers/);
    const account = { email: 'plain@example.test', password: 'plain-sailing-12' };
    await small.asAdmin('POST', '/admin-users', { ...account, name: 'Plain', role: 'admin' });
    const plain = { ...app, account };
    await openSignedIn(page, plain, small, '/settings');
    await expect(page.getByText('Super administrators manage this list.')).toBeVisible();
    await expect(page.getByRole('button', { name: 'Add an administrator' })).toHaveCount(0);
    await expect(page.getByRole('main').getByRole('button', { name: /^Actions for/ })).toHaveCount(0);
    await openSignedIn(page, plain, small, '/servers/quay');
    await expect(page.getByRole('button', { name: /Edit|Prepare|More actions/ })).toHaveCount(0);
    await openSignedIn(page, plain, small, '/keys');
    await page.getByRole('button', { name: 'New key' }).click();
    await expect(page.getByRole('dialog').getByLabel('Limit in US dollars')).toBeVisible();
    await expect(page.getByLabel('Or a name of its own')).toHaveCount(0);

    await openSignedIn(page, app, small, '/servers/quay');
    await expect(page.getByRole('button', { name: /More actions/ })).toBeVisible();
    await openSignedIn(page, app, small, '/settings');
    await expect(page.getByRole('button', { name: 'Add an administrator' })).toBeVisible();
  });
});
