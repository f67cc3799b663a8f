// An instance's configuration on its (simulated) server: the versions that are kept there, and the way back to one.
import { expect, expectAccessible, openSignedIn, test } from './fixtures';
import type { Server } from './server';

interface Versions {
  list: { version: string }[];
}

/** Saves a document, and waits until the server has it and kept as many older ones, and the task that did it is over. */
async function save(demo: Server, id: string, document: unknown, kept: number) {
  const config_json = JSON.stringify(document);
  const { task_id } = (await demo.asAdmin('PATCH', `/instances/${id}/config`, { config_json })) as {
    task_id: string;
  };
  await expect(async () => {
    const { status } = (await demo.asAdmin('GET', `/tasks/${task_id}`)) as { status: string };
    expect(status).toBe('done');
    const { list } = (await demo.asAdmin('GET', `/instances/${id}/config/versions`)) as Versions;
    expect(list).toHaveLength(kept);
  }).toPass({ timeout: 30_000 });
}

test('older versions are listed, compared and taken over into the editor', async ({ page, demo, app }) => {
  test.setTimeout(120_000);
  await openSignedIn(page, app, demo, '/instances?open=fra-1-d&tab=config');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 1 D' });
  await expect(panel.getByText('No older version yet')).toBeVisible();

  await save(demo, 'fra-1-d', { ui: { colour: 'blue', list: [1, 2] } }, 1);
  await save(demo, 'fra-1-d', { ui: { colour: 'green', list: [1, 3], extra: true } }, 2);
  // An open page follows.
  await expect(panel.getByRole('button', { name: /^In use until/ })).toHaveCount(2, { timeout: 30_000 });
  const editor = panel.getByLabel('Stored configuration');
  await expect(editor).toHaveValue(/"green"/);

  await panel
    .getByRole('button', { name: /^In use until/ })
    .first()
    .click();
  const changes = panel
    .getByRole('listitem')
    .filter({ hasText: /^In use until/ })
    .first();
  await expect(changes.getByRole('listitem').filter({ hasText: 'ui.colour' })).toHaveText(
    /Now"green"Then"blue"/,
  );
  await expect(changes.getByRole('listitem').filter({ hasText: 'ui.extra' })).toHaveText(
    /NowtrueThennothing/,
  );
  await expectAccessible(page);

  // Not into a document that is none.
  await editor.fill('{');
  await expect(panel.getByRole('button', { name: 'Take these values over' })).toBeDisabled();
  await panel.getByRole('button', { name: 'Undo changes' }).click();

  await panel.getByRole('button', { name: 'Take these values over' }).click();
  await expect(editor).toBeFocused();
  await expect(page.getByText('3 values are in the editor.')).toBeVisible();
  expect(JSON.parse(await editor.inputValue())).toEqual({
    ui: { colour: 'blue', list: [1, 2], extra: null },
  });
  const config = (await demo.asAdmin('GET', '/instances/fra-1-d/config')) as { config: { ui: unknown } };
  expect(config.config.ui).toEqual({ colour: 'green', list: [1, 3], extra: true });

  await panel.getByRole('button', { name: 'Review and save' }).click();
  await page
    .getByRole('dialog', { name: /^Save the configuration/ })
    .getByRole('button', { name: 'Save' })
    .click();
  await expect(async () => {
    const now = (await demo.asAdmin('GET', '/instances/fra-1-d/config')) as { config: { ui: unknown } };
    expect(now.config.ui).toEqual({ colour: 'blue', list: [1, 2] });
  }).toPass({ timeout: 30_000 });
});

test('a secret that differs stays as it is, and that is said', async ({ page, demo, app }) => {
  await save(demo, 'fra-2-c', { ui: { colour: 'red' } }, 1);
  await page.route('**/instances/fra-2-c/config/versions/*', async (route) => {
    const answer = await route.fetch();
    const body = (await answer.json()) as { data: { changes: unknown[] } };
    body.data.changes = [{ path: 'gateway.auth.token', is: '***', should: '***' }];
    await route.fulfill({ response: answer, json: body });
  });
  await openSignedIn(page, app, demo, '/instances?open=fra-2-c&tab=config');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 2 C' });
  await panel
    .getByRole('button', { name: /^In use until/ })
    .first()
    .click();
  await expect(panel.getByText('1 of these places stay as they are today')).toBeVisible();
  await expect(panel.getByRole('button', { name: 'Take these values over' })).toBeDisabled();
  await page.unrouteAll({ behavior: 'wait' });
});

test('a server that cannot be asked for them leaves the rest standing', async ({
  page,
  watch,
  demo,
  app,
}) => {
  await save(demo, 'fra-1-c', { ui: { colour: 'red' } }, 1);
  watch.allow(/status of 503 .*\/config\/versions/);
  await page.route('**/instances/fra-1-c/config/versions', (route) =>
    route.fulfill({ status: 503, json: { code: '5030', data: null, msg: 'unavailable' } }),
  );
  await openSignedIn(page, app, demo, '/instances?open=fra-1-c&tab=config');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 1 C' });
  await expect(panel.getByRole('button', { name: 'Try again' })).toBeVisible();
  await expect(panel.getByText('as the platform wrote it')).toBeVisible();
  await page.unroute('**/instances/fra-1-c/config/versions');
  // An event may have it read again before anybody clicks.
  const again = panel.getByRole('button', { name: 'Try again' });
  const version = panel.getByRole('button', { name: /^In use until/ }).first();
  await expect(async () => {
    if ((await again.count()) > 0) await again.click({ timeout: 1000 });
    await expect(version).toBeVisible({ timeout: 2000 });
  }).toPass();
});
