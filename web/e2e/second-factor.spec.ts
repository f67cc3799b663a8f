// The second factor in the browser, on both sides and in both languages: set up, shown at sign-in, replaced by a recovery code,
// required by the role; and the word about a password that somebody else set.
import { createHmac } from 'node:crypto';
import type { Page } from '@playwright/test';
import {
  appOf,
  choose,
  expect,
  expectAccessibleInBothThemes,
  expectNoOverflow,
  SIDES,
  test as base,
  textsOf,
  type AppUnderTest,
  type Side,
} from './fixtures';
import { Server } from './server';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** What an authenticator app shows, `later` periods from now (RFC 6238). */
function codeOf(secret: string, later = 0): string {
  const bits = Array.from(secret, (letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const hash = createHmac('sha1', key).update(counter).digest();
  const at = (hash.at(-1) ?? 0) & 15;
  return String((hash.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

/** A fresh account of either side: the server's own administrator is shared by all tests. */
async function freshApp(side: Side, server: Server, name: string): Promise<AppUnderTest> {
  const app = await appOf(side, server);
  if (side === 'employee') return app;
  const account = { email: `${name}@example.test`, password: 'spring-tide-4711' };
  await server.asAdmin('POST', '/admin-users', { ...account, name: 'Noor', role: 'admin' });
  return { ...app, account };
}

async function enterPassword(page: Page, app: AppUnderTest) {
  await page.getByLabel('E-mail').fill(app.account.email);
  await page.getByLabel('Password', { exact: true }).fill(app.account.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function signOut(page: Page) {
  await page.getByRole('button', { name: 'Account menu' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
}

const secretOf = async (page: Page) => (await page.locator('[data-secret]').innerText()).replaceAll(' ', '');

/** A server where everybody must have a second factor. */
const test = base.extend<object, { strict: Server }>({
  strict: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use) => {
      const server = await Server.start(() => ({ TIDEPOOL_MFA_REQUIRED: 'employee,admin' }));
      await use(server);
      await server.stop();
    },
    { scope: 'worker', timeout: 60_000 },
  ],
});

for (const side of SIDES) {
  test.describe(side, () => {
    test('sets up a second factor, signs in with it, and with a recovery code', async ({
      page,
      server,
      watch,
    }) => {
      watch.allow(/status of 40[01]/);
      const app = await freshApp(side, server, 'noor-set-up');
      await page.goto(app.url);
      await enterPassword(page, app);
      await page.getByRole('link', { name: 'Profile', exact: true }).click();
      const card = page.getByRole('region', { name: 'Second factor' });
      await expect(card.getByText('Off', { exact: true })).toBeVisible();
      await card.getByRole('button', { name: 'Set up' }).click();
      await card.getByLabel('Current password').fill('not the password');
      await card.getByRole('button', { name: 'Continue' }).click();
      await expect(card.getByRole('alert')).toContainText('The current password is incorrect.');
      await card.getByLabel('Current password').fill(app.account.password);
      await card.getByRole('button', { name: 'Continue' }).click();
      await expect(card.getByRole('img', { name: 'QR code for the authenticator app' })).toBeVisible();
      await expectAccessibleInBothThemes(page);
      const secret = await secretOf(page);
      await card.getByLabel(/Enter the six digits/).fill('000000');
      await card.getByRole('button', { name: 'Switch on' }).click();
      await expect(card.getByRole('alert')).toContainText('This is not the code for this key.');
      await card.getByLabel(/Enter the six digits/).fill(codeOf(secret));
      await card.getByRole('button', { name: 'Switch on' }).click();
      const list = card.getByRole('list', { name: 'Your recovery codes' });
      const codes = await textsOf(list.getByRole('listitem'));
      expect(codes).toHaveLength(10);
      await expectAccessibleInBothThemes(page);
      await card.getByRole('button', { name: 'I have saved them' }).click();
      await expect(card.getByText('On', { exact: true })).toBeVisible();
      await expect(card.getByText('Recovery codes left: 10')).toBeVisible();

      await signOut(page);
      await enterPassword(page, app);
      await expect(page.getByLabel('Code', { exact: true })).toBeFocused();
      await expectAccessibleInBothThemes(page);
      await page.setViewportSize({ width: 320, height: 640 });
      await expectNoOverflow(page);
      await page.setViewportSize({ width: 1280, height: 720 });
      expect(await page.evaluate((key) => localStorage.getItem(key), app.tokenKey)).toBeNull();
      await page.getByLabel('Code', { exact: true }).fill('000000');
      await page.getByRole('button', { name: 'Continue' }).click();
      await expect(page.getByRole('alert')).toContainText('This code is not valid.');
      // The code of the next period: the one of this period is used up.
      await page.getByLabel('Code', { exact: true }).fill(codeOf(secret, 1));
      await page.getByRole('button', { name: 'Continue' }).click();
      await expect(page.getByRole('navigation').first()).toBeVisible();

      await signOut(page);
      await enterPassword(page, app);
      await page.getByRole('button', { name: 'Use a recovery code instead' }).click();
      await page.getByLabel('Recovery code').fill(codes[0]?.toUpperCase() ?? '');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('link', { name: 'Profile', exact: true }).click();
      await expect(card.getByText('Recovery codes left: 9')).toBeVisible();

      await card.getByRole('button', { name: 'Switch off' }).click();
      await card.getByLabel('Current password').fill(app.account.password);
      await card.getByLabel('Code of your app, or a recovery code').fill(codes[1] ?? '');
      await card.getByRole('button', { name: 'Switch off' }).click();
      await expect(card.getByText('The second factor is off.')).toBeVisible();
      await expect(card.getByText('Off', { exact: true })).toBeVisible();
    });

    test('leads whoever must have one through setting it up', async ({ page, strict, watch }) => {
      watch.allow(/status of 401/);
      const app = await freshApp(side, strict, 'noor-required');
      await page.goto(`${app.url}/profile`);
      await choose(page, 'Language', '简体中文');
      await page.getByLabel('邮箱').fill(app.account.email);
      await page.getByLabel('密码', { exact: true }).fill(app.account.password);
      await page.getByRole('button', { name: '登录', exact: true }).click();
      await expect(page.getByText('您的组织要求您的账号启用两步验证。')).toBeVisible();
      await expect(page.getByRole('img', { name: '供身份验证器应用扫描的二维码' })).toBeVisible();
      await expectAccessibleInBothThemes(page);
      await page.setViewportSize({ width: 320, height: 640 });
      await expectNoOverflow(page);
      await page.setViewportSize({ width: 1280, height: 720 });
      expect(await page.evaluate((key) => localStorage.getItem(key), app.tokenKey)).toBeNull();
      await page.getByLabel(/输入应用显示的六位数字/).fill(codeOf(await secretOf(page)));
      await page.getByRole('button', { name: '启用' }).click();
      await expect(page.getByRole('list', { name: '您的恢复码' }).getByRole('listitem')).toHaveCount(10);
      await page.getByRole('button', { name: '我已保存' }).click();
      // Where the person wanted to go.
      await expect(page).toHaveURL(`${app.url}/profile`);
      await expect(page.getByText('您的账号必须启用，无法关闭。')).toBeVisible();
      await expect(page.getByRole('button', { name: '关闭', exact: true })).toHaveCount(0);
    });

    test('shows who set the password until it is acknowledged', async ({ page, server }) => {
      const app = await freshApp(side, server, 'noor-reset');
      const password = 'neap-tide-2026';
      if (side === 'admin') await server.asAdmin('PATCH', `/admin-users/${app.account.email}`, { password });
      else {
        const { id } = app.account as typeof app.account & { id: string };
        await server.asAdmin('PATCH', `/users/${id}`, { password });
      }
      await page.goto(app.url);
      await enterPassword(page, { ...app, account: { ...app.account, password } });
      const banner = page.getByRole('region', { name: 'Your password was changed by somebody else' });
      await expect(banner).toContainText(`Your password was set by ${server.admin.email}.`);
      await expectAccessibleInBothThemes(page);
      await page.setViewportSize({ width: 320, height: 640 });
      await expectNoOverflow(page);
      await page.reload();
      await expect(banner).toBeVisible();
      await banner.getByRole('button', { name: 'I know about it' }).click();
      await expect(banner).toHaveCount(0);
      await page.reload();
      await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible();
      await expect(banner).toHaveCount(0);
    });
  });
}
