// The real OpenClaw in a browser: straight to its gateway, over the relay, and its own window in the frame. `make test-real` says
// where it is.
import { expect, test, type Page } from '@playwright/test';
import { composer, replies, say } from './workplace';

const {
  TIDEPOOL_TEST_REAL_URL: url = '',
  TIDEPOOL_TEST_REAL_EMAIL: email = '',
  TIDEPOOL_TEST_REAL_PASSWORD: password = '',
  TIDEPOOL_TEST_REAL_GATEWAY: gateway = '',
} = process.env;

// It thinks for a while on a busy machine.
test.setTimeout(300_000);
const PATIENCE = { timeout: 120_000 };

/** Signs in; the addresses of all sockets from then on. */
async function signIn(page: Page): Promise<string[]> {
  const sockets: string[] = [];
  page.on('websocket', (socket) => sockets.push(socket.url()));
  await page.goto(`${url}/login`);
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByText('Live', { exact: true })).toBeVisible(PATIENCE);
  return sockets;
}

test('a browser that reaches the gateway talks to it straight, once its device is approved', async ({
  page,
}) => {
  const sockets = await signIn(page);
  await say(page, 'remember the breakwater');
  await expect(replies(page).last()).toContainText('remembers: breakwater', PATIENCE);
  expect(new URL(sockets.at(-1) ?? '').host).toBe(gateway);
  expect(sockets.filter((url) => new URL(url).host !== gateway)).toEqual([]);
  // The second time nothing is asked for.
  const approvals: string[] = [];
  page.on('request', (request) => request.url().endsWith('/devices') && approvals.push(request.url()));
  await page.reload();
  await expect(page.getByText('Live', { exact: true })).toBeVisible(PATIENCE);
  expect(new URL(sockets.at(-1) ?? '').host).toBe(gateway);
  expect(approvals).toEqual([]);
});

test('where it cannot be reached it answers over the relay, and in its own window', async ({ page }) => {
  await page.routeWebSocket(new RegExp(`//${gateway}/`), (socket) => socket.close());
  const sockets = await signIn(page);
  expect(sockets.at(-1)).toContain('/ws?ticket=');
  await say(page, 'remember the lighthouse');
  await expect(replies(page).last()).toContainText('remembers: breakwater lighthouse', PATIENCE);

  await page.getByRole('button', { name: 'More about this chat' }).click();
  await page.getByRole('menuitemradio', { name: /own window/ }).click();
  await expect(composer(page)).toHaveCount(0);
  const inside = page.frameLocator('iframe');
  const words = inside.getByRole('textbox').first();
  await expect(words).toBeVisible(PATIENCE);
  // What was said over the relay is there: it is the same conversation.
  await expect(inside.getByText('remembers: breakwater lighthouse').first()).toBeVisible(PATIENCE);
  await words.fill('remember the harbour');
  await words.press('Enter');
  await expect(inside.getByText('remembers: breakwater lighthouse harbour').first()).toBeVisible(PATIENCE);
});
