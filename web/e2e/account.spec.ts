// The way of a person through each app: sign in, look around, choose theme and language, change the password, sign out.
import { appOf, choose, expect, logIn, SIDES, test } from './fixtures';

for (const side of SIDES) {
  test.describe(side, () => {
    test('signs in, shows who that is, and signs out', async ({ page, server, watch }) => {
      // What was under way when the session ended is refused.
      watch.allow(/status of 401/);
      const app = await appOf(side, server);
      await page.goto(app.url);
      await expect(page).toHaveURL(`${app.url}/login`);
      await expect(page).toHaveTitle('Sign in · tidepool');
      await logIn(page, app.account);
      await expect(page).toHaveURL(`${app.url}/`);
      await expect(page).toHaveTitle('Home · tidepool');
      await expect(page.getByRole('main').getByText(app.account.email)).toBeVisible();
      await expect(page.getByText(/^v\d+\.\d+\.\d+/)).toBeVisible();

      const token = await page.evaluate((key) => localStorage.getItem(key), app.tokenKey);
      await page.getByRole('button', { name: 'Account menu' }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await expect(page).toHaveURL(`${app.url}/login`);
      await expect(page.getByText('You are signed out.')).toBeVisible();
      expect(await page.evaluate((key) => localStorage.getItem(key), app.tokenKey)).toBeNull();

      const path = side === 'employee' ? '/me/profile' : '/auth/me';
      const headers = { authorization: `Bearer ${token ?? ''}` };
      await expect
        .poll(async () => (await page.request.get(`${app.url}/api/v1${path}`, { headers })).status())
        .toBe(401);
    });

    test('names a wrong password and an empty field', async ({ page, server, watch }) => {
      watch.allow(/status of 401/);
      const app = await appOf(side, server);
      await page.goto(app.url);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await expect(page.getByLabel('E-mail')).toBeFocused();
      await expect(page.getByLabel('E-mail')).toHaveAccessibleDescription('Enter your e-mail address.');

      await page.getByLabel('E-mail').fill(`nobody-${side}@example.test`);
      await page.getByLabel('Password', { exact: true }).fill('not the password');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await expect(page.getByRole('alert')).toHaveText('Wrong e-mail or password.');
      await expect(page).toHaveURL(`${app.url}/login`);
    });

    test('keeps theme and language over a reload', async ({ page, server }) => {
      const app = await appOf(side, server);
      await page.goto(app.url);
      await logIn(page, app.account);
      await page.getByRole('link', { name: 'Profile', exact: true }).click();
      await expect(page.getByRole('heading', { level: 1 })).toBeFocused();

      await choose(page, 'Theme', 'Dark');
      await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
      await choose(page, 'Language', '简体中文');
      await expect(page.locator('html')).toHaveAttribute('lang', 'zh-CN');
      await expect(page).toHaveTitle('个人资料 · tidepool');

      await page.reload();
      await expect(page.getByRole('heading', { level: 1 })).toHaveText('个人资料');
      await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');

      await page.getByRole('button', { name: '账号菜单' }).click();
      await page.getByRole('menuitemradio', { name: '浅色' }).click();
      await expect(page.locator('html')).toHaveAttribute('data-theme', 'light');
      await page.getByRole('menuitemradio', { name: 'English' }).click();
      await expect(page.locator('html')).toHaveAttribute('lang', 'en');
    });

    test('follows the system theme until one is chosen', async ({ page, server }) => {
      const app = await appOf(side, server);
      await page.emulateMedia({ colorScheme: 'dark' });
      await page.goto(app.url);
      await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
      await page.emulateMedia({ colorScheme: 'light' });
      await expect(page.locator('html')).toHaveAttribute('data-theme', 'light');
      await page.getByRole('radio', { name: 'Dark' }).check({ force: true });
      await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
    });

    test('changes the password and stays signed in', async ({ page, server, watch }) => {
      watch.allow(/status of 40[01]/);
      const app = await appOf(side, server);
      await page.goto(app.url);
      await logIn(page, app.account);
      await page.getByRole('link', { name: 'Profile', exact: true }).click();

      const change = async (old: string, replacement: string) => {
        await page.getByLabel('Current password').fill(old);
        await page.getByLabel('New password').fill(replacement);
        await page.getByRole('button', { name: 'Change password' }).click();
      };
      await change(app.account.password, 'short');
      await expect(page.getByLabel('New password')).toHaveAccessibleDescription(
        /Use at least 8 characters\./,
      );

      await change('not the password', 'spring-tide-2026');
      await expect(page.getByRole('alert')).toContainText('The current password is incorrect.');

      await change(app.account.password, 'spring-tide-2026');
      await expect(page.getByText('Your password is changed.')).toBeVisible();
      await page.reload();
      await expect(page.getByRole('heading', { name: 'Profile', level: 1 })).toBeVisible();

      // The same person signs in with the new password; the administrator, whom the other tests share, gets the old one back.
      await server.token(app.url, { ...app.account, password: 'spring-tide-2026' });
      await change('spring-tide-2026', app.account.password);
      await expect(page.getByText('Your password is changed.')).toBeVisible();
    });
  });
}
