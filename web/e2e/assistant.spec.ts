// Talking to a running assistant in a browser, through the platform's real relay, and its own window on the embed origin.
import type { Page } from '@playwright/test';
import { addLocalServer, Assistant } from './assistant';
import { expect, expectAccessible, test as base } from './fixtures';
import { Server, type Account } from './server';
import { composer, openAs, replies, say, thread } from './workplace';

interface House {
  server: Server;
  employee: Account & { id: string };
  first: Assistant;
  second: Assistant;
}

const test = base.extend<object, { house: House }>({
  house: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use) => {
      const server = await Server.start(() => ({ TIDEPOOL_PROVIDER_ECHO: 'true' }));
      const employee = await server.newEmployee();
      const host = await addLocalServer(server);
      const first = await Assistant.start(server, host, 'pearl', employee.id);
      const second = await Assistant.start(server, host, 'coral', employee.id);
      await use({ server, employee, first, second });
      await Promise.all([first.stop(), second.stop()]);
      await server.stop();
    },
    { scope: 'worker', timeout: 60_000 },
  ],
});

test('a reply streams over the relay; a reload in the middle picks it up again', async ({ page, house }) => {
  await openAs(page, house.server, house.employee, '/?instance=pearl');
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await say(page, 'count 800');
  await expect(replies(page).last()).toContainText(/\bword5\b/);
  await page.reload();
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: /^Stop/ })).toBeVisible();
  await expect(replies(page).last()).toContainText(/\bword800\b/, { timeout: 30_000 });
  await expect(thread(page).getByRole('article')).toHaveCount(2);

  // Both sides are in the server's history, once each.
  const token = await page.evaluate(() => localStorage.getItem('tidepool.employee.token') ?? '');
  const headers = { authorization: `Bearer ${token}` };
  const stored = async () => {
    const address = `${house.server.employeeUrl}/api/v1/me/chat/history?instance_id=pearl`;
    const answer = await page.request.get(address, { headers });
    const { data } = (await answer.json()) as { data: { messages: { role: string }[] } };
    return data.messages.map(({ role }) => role);
  };
  await expect.poll(stored).toEqual(['assistant', 'user']);
});

test('another assistant: the pane is empty, and the socket to the first is closed', async ({
  page,
  house,
}) => {
  const open = new Set<string>();
  page.on('websocket', (socket) => {
    const instance = /instances\/([^/]+)\/ws/.exec(socket.url())?.[1] ?? '';
    open.add(instance);
    socket.on('close', () => open.delete(instance));
  });
  await openAs(page, house.server, house.employee, '/?instance=pearl');
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await say(page, 'count 300');
  await expect(page.getByRole('button', { name: /^Stop/ })).toBeVisible();
  await expect(replies(page).last()).toContainText(/\bword3\b/);
  expect([...open]).toEqual(['pearl']);
  await page
    .getByRole('complementary')
    .getByRole('button', { name: /Assistant coral/ })
    .click();
  await expect(page.getByRole('heading', { level: 1, name: 'Assistant coral' })).toBeVisible();
  await expect(thread(page).getByRole('article')).toHaveCount(0);
  await expect.poll(() => [...open]).toEqual(['coral']);
});

test('an assistant that goes away is named, and is live again when it is back', async ({
  page,
  house,
  watch,
}) => {
  watch.allow(/status of 50\d|WebSocket connection/);
  await openAs(page, house.server, house.employee, '/?instance=coral');
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await house.second.stop();
  await expect(page.getByText('The assistant itself does not answer.')).toBeVisible({ timeout: 20_000 });
  await expectAccessible(page);
  await house.second.run();
  await page.reload();
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await say(page, 'count 3');
  await expect(replies(page).last()).toContainText(/\bword3\b/);
});

test('the assistant’s own window opens in its frame, and goes when another is chosen', async ({
  page,
  house,
  watch,
}) => {
  const origin = house.server.windowOf('pearl');
  watch.allowOrigin(origin);
  await openAs(page, house.server, house.employee, '/?instance=pearl');
  await expect(composer(page)).toBeVisible();
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await page.getByRole('button', { name: 'More about this chat' }).click();
  const framed = page.waitForResponse((answer) => answer.url().startsWith(`${origin}/e/`));
  await page.getByRole('menuitemradio', { name: /own window/ }).click();
  const answer = await framed;
  expect(answer.status()).toBe(200);
  expect(answer.headers()['content-security-policy']).toContain(
    `frame-ancestors ${new URL(house.server.employeeUrl).origin}`,
  );
  const inside = page.frameLocator('iframe');
  await expect(inside.locator('openclaw-app')).toBeAttached();
  await expect(page.locator('iframe')).toHaveAttribute('title', /Assistant pearl/);
  await expect(composer(page)).toHaveCount(0);
  await page
    .getByRole('complementary')
    .getByRole('button', { name: /Assistant coral/ })
    .click();
  await expect(page.locator('iframe')).toHaveCount(0);
  await expect(composer(page)).toBeVisible();
});

/** The address of an assistant's own window, as the app asks for it. */
async function windowUrl(page: Page, server: Server, id: string): Promise<string> {
  const token = await page.evaluate(() => localStorage.getItem('tidepool.employee.token') ?? '');
  const answer = await page.request.post(`${server.employeeUrl}/api/v1/me/instances/${id}/embed-ticket`, {
    headers: { authorization: `Bearer ${token}` },
    data: {},
  });
  const { data } = (await answer.json()) as { data: { url: string } };
  return data.url;
}

async function keep(page: Page, url: string, note: string) {
  await page.goto(url);
  await page.evaluate((text) => localStorage.setItem('note', text), note);
}

async function kept(page: Page, url: string): Promise<string | null> {
  await page.goto(url);
  return page.evaluate(() => localStorage.getItem('note'));
}

test('what one assistant’s window stores no other’s can read', async ({ page, house, watch }) => {
  watch.allow(/status of 401/);
  for (const id of ['pearl', 'coral']) watch.allowOrigin(house.server.windowOf(id));
  await openAs(page, house.server, house.employee, '/?instance=pearl');
  const pearl = await windowUrl(page, house.server, 'pearl');
  const coral = await windowUrl(page, house.server, 'coral');
  await keep(page, pearl, 'of pearl');
  expect(await kept(page, coral)).toBeNull();
  expect(await kept(page, pearl)).toBe('of pearl');
  // One assistant's page at the other's host would read what is there.
  const strange = await page.goto(pearl.replace('//pearl.', '//coral.'));
  expect(strange?.status()).toBe(401);
});

test('on one host for all assistants, storage is cleared when another is shown', async ({ page, watch }) => {
  const server = await Server.start(({ embed }) => ({ TIDEPOOL_EMBED_URL: embed }));
  const started: Assistant[] = [];
  try {
    const employee = await server.newEmployee();
    const host = await addLocalServer(server);
    for (const id of ['pearl', 'coral']) started.push(await Assistant.start(server, host, id, employee.id));
    watch.allowOrigin(server.embedUrl);
    await openAs(page, server, employee, '/?instance=pearl');
    const pearl = await windowUrl(page, server, 'pearl');
    const coral = await windowUrl(page, server, 'coral');
    expect(new URL(pearl).origin).toBe(new URL(coral).origin);
    await keep(page, pearl, 'of pearl');
    expect(await kept(page, pearl)).toBe('of pearl');
    expect(await kept(page, coral)).toBeNull();
    expect(await kept(page, pearl)).toBeNull();
    await page.goto('about:blank');
  } finally {
    await Promise.all(started.map((assistant) => assistant.stop()));
    await server.stop();
  }
});
