// Single sign-on in the browser, through a real OpenID provider (TIDEPOOL_TEST_IDP_URL, see testbed/idp).
import { expect, test } from './fixtures';
import { Server } from './server';

const issuer = process.env.TIDEPOOL_TEST_IDP_URL;

test.describe('single sign-on', () => {
  test.skip(issuer === undefined, 'TIDEPOOL_TEST_IDP_URL is not set: no OpenID provider is running');

  let server: Server;
  test.beforeAll(async () => {
    server = await Server.start(({ employee }) => ({
      TIDEPOOL_EMPLOYEE_OIDC_ISSUER: issuer ?? '',
      TIDEPOOL_EMPLOYEE_OIDC_CLIENT_ID: 'employee',
      TIDEPOOL_EMPLOYEE_OIDC_CLIENT_SECRET: 'employee-secret-0123456789abcdef',
      TIDEPOOL_EMPLOYEE_OIDC_REDIRECT_URL: `${employee}/api/v1/auth/sso/callback`,
    }));
  });
  test.afterAll(async () => {
    await server.stop();
  });
  test.beforeEach(({ watch }) => watch.allowOrigin(new URL(issuer ?? 'http://unset.invalid').origin));

  test('leads through the provider and back to the same place, without the token in the address', async ({
    page,
  }) => {
    await page.goto(`${server.employeeUrl}/profile`);
    const addresses: string[] = [];
    page.on('framenavigated', (frame) => addresses.push(frame.url()));
    await page.getByRole('link', { name: 'Continue with single sign-on' }).click();
    await page.getByLabel('Email').fill('alice@example.test');
    await page.getByLabel('Password').fill('wonder');
    await page.getByRole('button', { name: 'Sign in' }).click();

    await expect(page).toHaveURL(`${server.employeeUrl}/profile`);
    await expect(page.getByRole('main').getByText('alice@example.test')).toBeVisible();
    await expect(page.getByText('This account has no password.')).toBeVisible();
    expect(await page.evaluate(() => location.href)).not.toContain('token');
    await page.goBack();
    await page.goForward();
    expect(page.url()).not.toContain('token');
    expect(addresses.at(-1)).not.toContain('token');
  });

  test('a refusal is shown on the login page', async ({ page }) => {
    await page.goto(server.employeeUrl);
    await page.getByRole('link', { name: 'Continue with single sign-on' }).click();
    await page.getByLabel('Email').fill('carol@example.test');
    await page.getByLabel('Password').fill('unverified1');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page.getByRole('alert')).toHaveText(/^Single sign-on did not work: .+/);
    await expect(page.getByLabel('E-mail')).toBeVisible();
  });

  test('the button is absent where the server has no provider', async ({ page }) => {
    await page.goto(server.adminUrl);
    await expect(page.getByText(/^v\d/)).toBeVisible();
    await expect(page.getByRole('link', { name: 'Continue with single sign-on' })).toHaveCount(0);
  });
});
