// Every page of the console, with no rows and with many: it opens, axe finds nothing in either theme, nothing sticks out.
import { addMany, MANY_SETTINGS } from './admin-fleet';
import { appOf, expect, expectAccessible, expectNoOverflow, openPlace, openSignedIn, test } from './fixtures';
import places from './places.json' with { type: 'json' };
import { Server } from './server';

/** Those that lead to no record, and need somebody signed in. */
const PAGES = places.admin.filter((place) => place !== '/login' && !place.includes('{'));

test.describe('with no rows', () => {
  for (const theme of ['light', 'dark'] as const) {
    test(`every page opens in the ${theme} theme`, async ({ page, server }) => {
      test.setTimeout(300_000);
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      const app = await appOf('admin', server);
      await openSignedIn(page, app, server);
      for (const place of PAGES) {
        await openPlace(page, app, place);
        await expectAccessible(page);
      }
    });
  }

  test('every page fits a phone', async ({ page, server }) => {
    test.setTimeout(120_000);
    await page.setViewportSize({ width: 375, height: 812 });
    const app = await appOf('admin', server);
    await openSignedIn(page, app, server);
    for (const place of PAGES) {
      await openPlace(page, app, place);
      await expectNoOverflow(page);
    }
  });
});

test.describe('with 5,000 instances, employees and requests', () => {
  const MANY = 5_000;
  /** Those that show some of them; the others are as empty as above. The first employee's id is not ours to choose. */
  const FULL_PAGES = places.admin
    .filter((place) => /^\/(instances|servers|users|usage|requests|audit)?(?![a-z])/.test(place))
    .filter((place) => !place.includes('new=1'))
    .map((place) =>
      place.replace('{instance}', 'a-0001').replace('{server}', 'big').replace('{user}', 'employee-2'),
    );
  let full: Server;

  test.beforeAll(async () => {
    full = await Server.start(() => MANY_SETTINGS);
    await addMany(full, MANY);
  });

  test.afterAll(() => full.stop());

  for (const theme of ['light', 'dark'] as const) {
    test(`every page opens in the ${theme} theme`, async ({ page, watch }) => {
      test.setTimeout(480_000);
      // Nobody has given this server a key to log in with, so nothing was set up on it.
      watch.allow(/status of 409 .*\/(containers|config|logs)/);
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      const app = await appOf('admin', full);
      await openSignedIn(page, app, full);
      for (const place of FULL_PAGES) {
        await openPlace(page, app, place);
        await expectAccessible(page);
      }
      await page.setViewportSize({ width: 375, height: 812 });
      for (const place of ['/', '/instances', '/users', '/requests']) {
        await openPlace(page, app, place);
        await expectNoOverflow(page);
      }
    });
  }

  test('on a phone the chosen tab is in sight', async ({ page }) => {
    await page.setViewportSize({ width: 375, height: 812 });
    const app = await appOf('admin', full);
    await openSignedIn(page, app, full, '/instances?open=a-0001&tab=audit');
    await expect(page.getByRole('tab', { name: 'Audit' })).toBeInViewport({ ratio: 0.9 });
  });

  test('lists show all of them, page by page', async ({ page }) => {
    const app = await appOf('admin', full);
    await openSignedIn(page, app, full, '/instances');
    await expect(page.getByText('1–50 of 5,000')).toBeVisible();
    await page.getByRole('button', { name: 'Next page' }).click();
    await expect(page).toHaveURL(/page=2/);
    await expect(page.getByText('51–100 of 5,000')).toBeVisible();
    await page.getByRole('searchbox').fill('a-4999');
    await expect(page.getByText('1–1 of 1')).toBeVisible();
    await expect(page).toHaveURL(/q=a-4999/);
    await openSignedIn(page, app, full, '/users');
    await expect(page.getByText('1–50 of 5,000')).toBeVisible();
    await openSignedIn(page, app, full, '/requests');
    await expect(page.getByText(/1–50 of 5,0\d\d/)).toBeVisible();
  });
});
