// A server in the console: by what it is known, and the form in which that is said.
import { expect, openSignedIn, test } from './fixtures';

test('a server’s page says by what it is known, and what is no key is refused', async ({
  page,
  demo,
  app,
  watch,
}) => {
  watch.allow(/status of 400/);
  const facts: [string, RegExp][] = [
    ['fra-1', /Taken at first use, not compared/],
    ['fra-2', /Compared with the expected key/],
    ['lis-1', /Certified by SHA256:/],
  ];
  for (const [server, text] of facts) {
    await openSignedIn(page, app, demo, `/servers/${server}`);
    await expect(page.getByText(text)).toBeVisible();
  }
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const form = page.getByRole('dialog', { name: 'Edit Lisbon 1' });
  const expected = form.getByLabel('Expected host key');
  await expect(expected).toHaveValue(/^@cert-authority 127\.0\.0\.1 ssh-ed25519 /);
  await expected.fill('not a key');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form.getByText(/^must be a public key/)).toBeVisible();
});

test('a change of a server keeps the key that it logs in with', async ({ page, demo, app }) => {
  await openSignedIn(page, app, demo, '/servers/fra-2');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const form = page.getByRole('dialog', { name: 'Edit Frankfurt 2' });
  await form.getByLabel('Notes').fill('by the window');
  await form.getByRole('button', { name: 'Save' }).click();
  await expect(form).toHaveCount(0);
  const server = (await demo.asAdmin('GET', '/servers/fra-2/detail')) as Record<string, unknown>;
  expect(server).toMatchObject({
    notes: 'by the window',
    has_ssh_key: true,
    host_key_trust: 'compared',
  });
});

test('the key of a server is removed by an action of its own, which asks first', async ({
  page,
  demo,
  app,
  watch,
}) => {
  // What the server holds as its key opens nothing.
  watch.allow(/status of (409|503) .*\/containers/);
  const server = { id: 'spare', name: 'Spare', host: '127.0.0.1', ssh_key: 'not a key, only a text' };
  await demo.asAdmin('POST', '/servers', server);
  await demo.asAdmin('PATCH', '/servers/spare', { status: 'disabled' });
  const isStored = async () =>
    ((await demo.asAdmin('GET', '/servers/spare/detail')) as { has_ssh_key: boolean }).has_ssh_key;
  await openSignedIn(page, app, demo, '/servers/spare');
  await page.getByRole('button', { name: 'Remove the key' }).click();
  const asking = page.getByRole('dialog', { name: 'Remove the SSH key of Spare?' });
  const remove = asking.getByRole('button', { name: 'Remove the key' });
  await expect(asking.getByText(/no longer reaches this server/)).toBeVisible();
  await expect(remove).toBeDisabled();
  expect(await isStored()).toBe(true);
  await asking.getByLabel('Type spare to confirm').fill('spare');
  await remove.click();
  await expect(asking).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Remove the key' })).toHaveCount(0);
  expect(await isStored()).toBe(false);
  await demo.asAdmin('DELETE', '/servers/spare');
});
