// Sessions that end from outside, in another tab or by time-out, and servers that fail: nobody loses their place.
import { appOf, expect, expectAccessible, logIn, openSignedIn, SIDES, test } from './fixtures';

const OWN = { employee: '/me/profile', admin: '/auth/me' };
/** The page that shows it. */
const OWN_PAGE = { employee: '/', admin: '/profile' };

for (const side of SIDES) {
  test.describe(side, () => {
    test('a token that ended leads to the login page and back to the same place', async ({
      page,
      server,
      watch,
    }) => {
      watch.allow(/status of 401/);
      const app = await appOf(side, server);
      const token = await openSignedIn(page, app, server, '/profile?from=test');
      await server.endToken(app.url, token);
      await page.reload();
      await expect(page).toHaveURL(`${app.url}/login?next=%2Fprofile%3Ffrom%3Dtest`);
      await expect(page.getByText('Your session has ended.')).toBeVisible();
      // It may have known before the reload: that does not make it forget.
      await page.reload();
      await expect(page.getByText('Your session has ended.')).toBeVisible();
      await logIn(page, app.account);
      await expect(page).toHaveURL(`${app.url}/profile?from=test`);
      await expect(page.getByRole('heading', { name: 'Profile', level: 1 })).toBeVisible();
    });

    test('signing out in one tab signs out the others, signing in brings them back', async ({
      page,
      context,
      server,
      watch,
    }) => {
      // What was under way when the session ended is refused.
      watch.allow(/status of 401/);
      const app = await appOf(side, server);
      await openSignedIn(page, app, server, '/profile');
      const other = await context.newPage();
      await other.goto(app.url);
      await other.getByRole('button', { name: 'Account menu' }).click();
      await other.getByRole('menuitem', { name: 'Sign out' }).click();
      await expect(page).toHaveURL(`${app.url}/login?next=%2Fprofile`);
      await expect(page.getByText('You signed out in another tab.')).toBeVisible();

      await logIn(other, app.account);
      await expect(page).toHaveURL(`${app.url}/profile`);
    });

    test('a link cannot lead out of the app or replace the session', async ({ page, server }) => {
      const app = await appOf(side, server);
      await page.goto(`${app.url}/login?next=${encodeURIComponent('//elsewhere.invalid/')}`);
      await logIn(page, app.account);
      await expect(page).toHaveURL(`${app.url}/`);

      await page.goto(`${app.url}/profile#token=somebody-else`);
      await expect(page).toHaveURL(`${app.url}/profile`);
      await expect(page.getByRole('main').getByText(app.account.email)).toBeVisible();
    });

    test('says why single sign-on failed', async ({ page, server }) => {
      const app = await appOf(side, server);
      await page.goto(`${app.url}/#sso_error=account%20revoked`);
      await expect(page.getByRole('alert')).toHaveText('Single sign-on did not work: account revoked');
      await expect(page).toHaveURL(`${app.url}/login`);
    });

    test('a page that does not exist says so', async ({ page, server }) => {
      const app = await appOf(side, server);
      await openSignedIn(page, app, server, '/no/such/page');
      await expect(page).toHaveTitle('Page not found · tidepool');
      await page.getByRole('link', { name: 'Go to the home page' }).click();
      await expect(page).toHaveURL(`${app.url}/`);
    });

    test('a panel that cannot load names the failure, stays usable and recovers', async ({
      page,
      server,
      watch,
    }) => {
      watch.allow(/status of 500/);
      const app = await appOf(side, server);
      const own = `**/api/v1${OWN[side]}`;
      await page.route(own, (route) =>
        route.fulfill({
          status: 500,
          headers: { 'x-request-id': 'request-7' },
          json: { code: '5000', data: null, msg: 'internal error' },
        }),
      );
      const token = await server.token(app.url, app.account);
      await page.goto(`${app.url}/login`);
      await page.evaluate(([key, value]) => localStorage.setItem(key, value), [app.tokenKey, token] as const);
      await page.goto(app.url + OWN_PAGE[side]);
      const alert = page.getByRole('alert').first();
      await expect(alert).toContainText('This could not be loaded');
      await expect(alert).toContainText('Request request-7');
      await expectAccessible(page);

      await page.unroute(own);
      await alert.getByRole('button', { name: 'Try again' }).click();
      await expect(page.getByRole('main').getByText(app.account.email)).toBeVisible();
    });

    test('known data stays, with its age, when it cannot be refreshed', async ({ page, server, watch }) => {
      watch.allow(/ERR_CONNECTION_REFUSED/);
      const app = await appOf(side, server);
      const own = `**/api/v1${OWN[side]}`;
      await openSignedIn(page, app, server, OWN_PAGE[side]);
      await page.route(own, (route) => route.abort('connectionrefused'));
      await page.clock.install();
      await page.clock.fastForward(60_000);
      await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
      await page.clock.fastForward(10_000);
      await expect(page.getByText('Could not refresh.').first()).toBeVisible();
      await expect(page.getByRole('main').getByText(app.account.email)).toBeVisible();
      await expectAccessible(page);

      await page.unroute(own);
      await page.getByRole('button', { name: 'Try again' }).first().click();
      await expect(page.getByText('Could not refresh.')).toHaveCount(0);
    });

    test('offers to reload when the server has a new version', async ({ page, server }) => {
      const app = await appOf(side, server);
      await openSignedIn(page, app, server);
      await expect(page.getByText(/^v\d/).first()).toBeVisible();
      await page.route('**/api/v1/auth/options', (route) =>
        route.fulfill({ json: { code: '0000', data: { sso: false, version: '99.0.0' }, msg: 'ok' } }),
      );
      await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
      await expect(page.getByText('A new version is ready.')).toBeVisible();
      await page.unroute('**/api/v1/auth/options');
      await page.getByRole('button', { name: 'Reload' }).click();
      await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
      await expect(page.getByText('A new version is ready.')).toHaveCount(0);
    });
  });
}

test('a revoked account is signed out at its next request and cannot come back', async ({
  page,
  server,
  watch,
}) => {
  watch.allow(/status of 40[13]/);
  const employee = await server.newEmployee();
  await page.goto(server.employeeUrl);
  await logIn(page, employee);
  await server.patchEmployee(employee.id, { status: 'revoked' });
  await page.reload();
  await expect(page.getByText('Your session has ended.')).toBeVisible();
  await page.getByLabel('E-mail').fill(employee.email);
  await page.getByLabel('Password', { exact: true }).fill(employee.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toHaveText(
    'This account has been deactivated. Ask your administrator.',
  );
});

test('the daily tokens are shown with their limit and reset time', async ({ page, server }) => {
  const employee = await server.newEmployee();
  await page.goto(server.employeeUrl);
  await logIn(page, employee);
  await expect(page.getByText('No daily limit')).toBeVisible();
  await server.patchEmployee(employee.id, { quota_daily: 5000 });
  for (const place of ['/', '/profile']) {
    await page.goto(server.employeeUrl + place);
    const meter = page.getByRole('meter', { name: 'Daily tokens' });
    await expect(meter).toHaveAttribute('aria-valuetext', '5,000 of 5,000 tokens left');
    await expect(page.getByText('5,000 left')).toBeVisible();
    await expect(page.getByText(/^Resets (in \d+ (hours?|minutes?|seconds?)|tomorrow)/)).toBeVisible();
  }
});

test('the console leads to the API reference', async ({ page, context, server }) => {
  const app = await appOf('admin', server);
  await openSignedIn(page, app, server, '/settings');
  const opened = context.waitForEvent('page');
  await page.getByRole('link', { name: /Open the reference/ }).click();
  const reference = await opened;
  await expect(reference).toHaveURL(`${app.url}/api/v1/docs`);
  await expect(reference.getByRole('heading', { level: 1 })).toBeVisible();
});

test('too many attempts say when to try again', async ({ page, server, watch }) => {
  watch.allow(/status of 4(01|29)/);
  await page.goto(server.employeeUrl);
  const email = 'locked-out@example.test';
  for (let attempt = 0; attempt < 10; attempt += 1) {
    await page.request.post(`${server.employeeUrl}/api/v1/auth/login`, {
      data: { email, password: 'wrong-password' },
    });
  }
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: true }).fill('wrong-password');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toHaveText(
    /^Too many attempts\. Try again in \d+ (minutes?|seconds?)\.$/,
  );
});
