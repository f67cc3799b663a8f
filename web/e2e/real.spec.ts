// The real OpenClaw in a browser: a chat over the relay, and its own window in the frame. `make test-real` says where it is.
import { expect, test } from '@playwright/test';
import { composer, replies, say } from './workplace';

const {
  TIDEPOOL_TEST_REAL_URL: url = '',
  TIDEPOOL_TEST_REAL_EMAIL: email = '',
  TIDEPOOL_TEST_REAL_PASSWORD: password = '',
} = process.env;

// It thinks for a while on a busy machine.
test.setTimeout(300_000);
const PATIENCE = { timeout: 120_000 };

test('the real assistant answers over the relay, and in its own window', async ({ page }) => {
  await page.goto(`${url}/login`);
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByText('Live', { exact: true })).toBeVisible(PATIENCE);
  await say(page, 'remember the lighthouse');
  await expect(replies(page).last()).toContainText('remembers: lighthouse', PATIENCE);

  await page.getByRole('button', { name: 'More about this chat' }).click();
  await page.getByRole('menuitemradio', { name: /own window/ }).click();
  await expect(composer(page)).toHaveCount(0);
  const inside = page.frameLocator('iframe');
  const words = inside.getByRole('textbox').first();
  await expect(words).toBeVisible(PATIENCE);
  // What was said over the relay is there: it is the same conversation.
  await expect(inside.getByText('remembers: lighthouse').first()).toBeVisible(PATIENCE);
  await words.fill('remember the harbour');
  await words.press('Enter');
  await expect(inside.getByText('remembers: lighthouse harbour').first()).toBeVisible(PATIENCE);
});
