// Every page of the console, with no rows and with many: it opens, axe finds nothing in either theme, nothing sticks out.
import { addMany, MANY_SETTINGS } from './admin-fleet';
import {
  appOf,
  expect,
  expectAccessibleInBothThemes,
  expectNoOverflow,
  openPlace,
  openSignedIn,
  test,
} from './fixtures';
import places from './places.json' with { type: 'json' };
import { Server } from './server';

const PHONE = { width: 375, height: 812 };

test.describe('with no rows', () => {
  // They change nothing, so that each may run on the server that is there.
  test.describe.configure({ mode: 'parallel' });

  for (const place of places.admin) {
    // Those that lead to no record, and need somebody signed in.
    if (place === '/login' || place.includes('{')) continue;
    test(`${place} opens, axe finds nothing in either theme, and it fits a phone`, async ({
      page,
      server,
    }) => {
      const app = await appOf('admin', server);
      await openSignedIn(page, app, server, place);
      await expectAccessibleInBothThemes(page);
      await page.setViewportSize(PHONE);
      await openPlace(page, app, place);
      await expectNoOverflow(page);
    });
  }
});

test.describe('with 5,000 instances, employees and requests', () => {
  const MANY = 5_000;
  /** Those that show some of them; the others are as empty as above. The first employee's id is not ours to choose. */
  const FULL_PLACES = places.admin
    .filter((place) => /^\/(instances|servers|users|usage|requests|audit)?(?![a-z])/.test(place))
    .filter((place) => !place.includes('new=1'))
    .map((place) =>
      place
        .replace('{instance}', 'a-0001')
        .replace('{server}', 'big')
        .replace('{user}', 'employee-2')
        .replace('{request}', '1'),
    );
  let full: Server;

  test.beforeAll(async () => {
    full = await Server.start(() => MANY_SETTINGS);
    await addMany(full, MANY);
  });

  test.afterAll(() => full.stop());

  for (const place of FULL_PLACES)
    test(`${place} opens, and axe finds nothing in either theme`, async ({ page, watch }) => {
      // Nobody has given this server a key to log in with, so nothing was set up on it.
      watch.allow(/status of 409 .*\/(containers|config|logs)/);
      const app = await appOf('admin', full);
      await openSignedIn(page, app, full, place);
      await expectAccessibleInBothThemes(page);
    });

  for (const place of ['/', '/instances', '/users', '/usage', '/requests', '/requests/1'])
    test(`${place} fits a phone`, async ({ page }) => {
      await page.setViewportSize(PHONE);
      const app = await appOf('admin', full);
      await openSignedIn(page, app, full, place);
      await expectNoOverflow(page);
    });

  test('on a phone the chosen tab is in sight', async ({ page }) => {
    await page.setViewportSize(PHONE);
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
    await openPlace(page, app, '/users');
    await expect(page.getByText('1–50 of 5,000')).toBeVisible();
    await openPlace(page, app, '/requests');
    await expect(page.getByText(/1–50 of 5,0\d\d/)).toBeVisible();
  });
});
