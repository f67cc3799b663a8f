// Everybody can use it: axe finds nothing in either theme, the keyboard suffices, narrow screens and Chinese fit.
import {
  appOf,
  choose,
  expect,
  expectAccessibleInBothThemes,
  expectNoOverflow,
  logIn,
  openPlace,
  openSignedIn,
  SIDES,
  signIn,
  test,
  WIDTHS,
} from './fixtures';

const PAGES = ['/', '/profile', '/no/such/page'];

for (const side of SIDES) {
  test.describe(side, () => {
    test('axe finds nothing in either theme', async ({ page, server, watch }) => {
      // Six views and two overlays, each looked at twice.
      test.slow();
      watch.allow(/status of 401/);
      const app = await appOf(side, server);
      await page.goto(app.url);
      await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
      await expectAccessibleInBothThemes(page);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByLabel('E-mail').fill('nobody@example.test');
      await page.getByLabel('Password', { exact: true }).fill('not the password');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await expect(page.getByRole('alert')).toBeVisible();
      await expectAccessibleInBothThemes(page);

      await signIn(page, app, server);
      for (const place of PAGES) {
        await openPlace(page, app, place);
        await expectAccessibleInBothThemes(page);
      }
      await page.getByRole('button', { name: 'Account menu' }).click();
      await expect(page.getByRole('menu')).toBeVisible();
      await expectAccessibleInBothThemes(page);
      await page.keyboard.press('Escape');

      await page.setViewportSize({ width: 375, height: 812 });
      await page.getByRole('button', { name: 'Open navigation' }).click();
      await expect(page.getByRole('dialog')).toBeVisible();
      await expectAccessibleInBothThemes(page);
    });

    test('the keyboard alone signs in, skips the navigation, moves and signs out', async ({
      page,
      server,
    }) => {
      const app = await appOf(side, server);
      const { keyboard } = page;
      await page.goto(app.url);
      await expect(page.getByLabel('E-mail')).toBeFocused();
      await keyboard.type(app.account.email);
      await keyboard.press('Tab');
      await keyboard.type(app.account.password);
      await keyboard.press('Enter');
      await expect(page).toHaveTitle('Home · tidepool');

      await page.reload();
      await expect(page.getByRole('main').getByText(app.account.email)).toBeVisible();
      await keyboard.press('Tab');
      const skip = page.getByRole('link', { name: 'Skip to content' });
      await expect(skip).toBeFocused();
      await expect(skip).toBeInViewport();
      await keyboard.press('Enter');
      await expect(page.getByRole('main')).toBeFocused();
      expect(page.url()).toBe(`${app.url}/`);

      const link = page.getByRole('link', { name: 'Profile', exact: true });
      await link.focus();
      await keyboard.press('Enter');
      await expect(page.getByRole('heading', { name: 'Profile', level: 1 })).toBeFocused();

      await page.getByRole('button', { name: 'Account menu' }).focus();
      await keyboard.press('Enter');
      await expect(page.getByRole('menu')).toBeVisible();
      await keyboard.press('End');
      await expect(page.getByRole('menuitem', { name: 'Sign out' })).toBeFocused();
      await keyboard.press('Enter');
      await expect(page).toHaveURL(`${app.url}/login`);
    });

    test('the next page has the focus although the first never came', async ({ page, server }) => {
      const app = await appOf(side, server);
      let held = 0;
      await page.route(/\/assets\/(chat|overview)-[^/]*\.js$/, () => {
        held += 1;
      });
      await page.goto(app.url);
      await logIn(page, app.account);
      await page.getByRole('link', { name: 'Profile', exact: true }).click();
      await expect(page.getByRole('heading', { name: 'Profile', level: 1 })).toBeFocused();
      expect(held).toBe(1);
    });

    test('the focus is visible on every control', async ({ page, server }) => {
      const app = await appOf(side, server);
      await openSignedIn(page, app, server, '/profile');
      const seen = new Set<string>();
      for (let step = 0; step < 40; step += 1) {
        await page.keyboard.press('Tab');
        const control = await page.evaluate(() => {
          const element = document.activeElement;
          if (element === null || element === document.body) return null;
          // A radio button is drawn by its label.
          const drawn = element.closest('label') ?? element;
          const { outlineStyle, outlineWidth } = getComputedStyle(drawn);
          return {
            html: element.outerHTML.slice(0, 100),
            visible: outlineStyle !== 'none' && outlineWidth !== '0px',
          };
        });
        if (control === null) break;
        expect(control.visible, control.html).toBe(true);
        seen.add(control.html);
      }
      expect(seen.size).toBeGreaterThan(8);
    });

    test('375 px: nothing sticks out, the navigation is behind a button', async ({ page, server }) => {
      await page.setViewportSize({ width: 375, height: 812 });
      const app = await appOf(side, server);
      await page.goto(app.url);
      await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
      await expectNoOverflow(page);
      await signIn(page, app, server);
      for (const place of PAGES) {
        await openPlace(page, app, place);
        await expectNoOverflow(page);
      }
      await expect(page.getByRole('navigation')).toHaveCount(0);
      await page.getByRole('button', { name: 'Open navigation' }).click();
      await page.getByRole('dialog').getByRole('link', { name: 'Profile' }).click();
      await expect(page).toHaveURL(`${app.url}/profile`);
      await expect(page.getByRole('dialog')).toHaveCount(0);
    });

    test('Chinese fits at every width', async ({ page, server }) => {
      test.slow();
      const app = await appOf(side, server);
      await page.goto(app.url);
      await choose(page, 'Language', '简体中文');
      await expect(page.getByRole('button', { name: '登录' })).toBeVisible();
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto(app.url);
        await expect(page.getByRole('button', { name: '登录' })).toBeVisible();
        await expectNoOverflow(page);
      }
      await signIn(page, app, server);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        for (const place of PAGES) {
          await openPlace(page, app, place);
          await expect(page.locator('html')).toHaveAttribute('lang', 'zh-CN');
          await expect(page.getByText('加载中…')).toHaveCount(0);
          await expectNoOverflow(page);
        }
      }
    });

    test('reduced motion is honoured', async ({ page, server }) => {
      await page.emulateMedia({ reducedMotion: 'reduce' });
      const app = await appOf(side, server);
      await page.goto(app.url);
      const button = page.getByRole('button', { name: 'Sign in' });
      await expect(button).toBeVisible();
      const seconds = await button.evaluate((element) =>
        parseFloat(getComputedStyle(element).transitionDuration),
      );
      expect(seconds).toBeLessThan(0.001);
    });
  });
}
