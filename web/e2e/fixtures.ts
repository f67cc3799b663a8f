// What every browser test gets: a running server, the two apps as a person meets them, and a watch that fails the test
// on any console error, policy violation or request to another origin.
import { AxeBuilder } from '@axe-core/playwright';
import { test as base, expect, type ConsoleMessage, type Page } from '@playwright/test';
import { Server, type Account } from './server';

export { expect };
export const SIDES = ['employee', 'admin'] as const;
export type Side = (typeof SIDES)[number];

export interface Watch {
  /** A failure that the test provokes; everything else stays forbidden. */
  allow: (pattern: RegExp) => void;
  /** Another origin that the test has to visit. */
  allowOrigin: (origin: string) => void;
}

interface TestFixtures {
  watch: Watch;
  /** Sample data and simulated servers. A file's tests share one and may change it: the next file gets another. */
  demo: Server;
  /** The demo's console. */
  app: AppUnderTest;
}

interface WorkerFixtures {
  server: Server;
  /** By the file that it was started for; at most one. */
  demos: Map<string, Server>;
}

export const test = base.extend<TestFixtures, WorkerFixtures>({
  server: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use) => {
      const server = await Server.start();
      await use(server);
      await server.stop();
    },
    { scope: 'worker', timeout: 60_000 },
  ],

  demos: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use) => {
      const demos = new Map<string, Server>();
      await use(demos);
      for (const demo of demos.values()) await demo.stop();
    },
    { scope: 'worker' },
  ],

  demo: [
    async ({ demos }, use, { file }) => {
      for (const [other, old] of demos)
        if (other !== file) {
          demos.delete(other);
          await old.stop();
        }
      const demo = demos.get(file) ?? (await Server.start(undefined, 'demo'));
      demos.set(file, demo);
      await use(demo);
    },
    { timeout: 150_000 },
  ],

  app: async ({ demo }, use) => use(await appOf('admin', demo)),

  watch: [
    async ({ context }, use) => {
      const problems: string[] = [];
      const allowed: RegExp[] = [];
      const visited = new Set<string>();
      const foreign = new Set<string>();
      await context.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', (event) => {
          console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI}`);
        });
      });
      context.on('console', (message: ConsoleMessage) => {
        const { url } = message.location();
        if (!['error', 'warning'].includes(message.type())) return;
        if (URL.canParse(url) && foreign.has(new URL(url).origin)) return;
        problems.push(`${message.text()} (${url})`);
      });
      context.on('weberror', (error) => problems.push(String(error.error())));
      context.on('request', (request) => {
        const { origin, protocol } = new URL(request.url());
        if (protocol.startsWith('http')) visited.add(origin);
      });
      await use({
        allow: (pattern) => allowed.push(pattern),
        allowOrigin: (origin) => foreign.add(origin),
      });
      expect(problems.filter((problem) => !allowed.some((pattern) => pattern.test(problem)))).toEqual([]);
      // A test has one app in view, or both below one origin.
      expect([...visited].filter((origin) => !foreign.has(origin)).length).toBeLessThanOrEqual(1);
    },
    { auto: true },
  ],
});

/** One of the two apps with somebody who can sign in. */
export interface AppUnderTest {
  side: Side;
  url: string;
  account: Account;
  tokenKey: string;
}

export async function appOf(side: Side, server: Server): Promise<AppUnderTest> {
  return side === 'employee'
    ? {
        side,
        url: server.employeeUrl,
        account: await server.newEmployee(),
        tokenKey: 'tidepool.employee.token',
      }
    : { side, url: server.adminUrl, account: server.admin, tokenKey: 'tidepool.admin.token' };
}

export async function logIn(page: Page, account: Account) {
  await page.getByLabel('E-mail').fill(account.email);
  await page.getByLabel('Password', { exact: true }).fill(account.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(
    page.getByRole('navigation').or(page.getByRole('button', { name: 'Open navigation' })),
  ).toBeVisible();
}

/** Opens `place` signed in, without the login form; answers the token. */
export async function openSignedIn(
  page: Page,
  app: AppUnderTest,
  server: Server,
  place = '/',
): Promise<string> {
  const token = await server.token(app.url, app.account);
  await page.goto(`${app.url}/login`);
  await page.evaluate(([key, value]) => localStorage.setItem(key, value), [app.tokenKey, token] as const);
  await openPlace(page, app, place);
  return token;
}

/** Opens another place with the session that the page has. */
export async function openPlace(page: Page, app: AppUnderTest, place: string) {
  await page.goto(app.url + place);
  // Where a dialog opens with the page, the page's own heading is hidden from everybody until it is closed.
  const isDialog = /[?&](open|new|import|task)=/.test(place);
  await expect(isDialog ? page.getByRole('dialog') : page.getByRole('heading', { level: 1 })).toBeVisible();
  await expect(page.getByText('Loading…')).toHaveCount(0);
}

export async function choose(page: Page, group: string, option: string) {
  await page.getByRole('group', { name: group }).getByText(option).click();
}

export async function expectAccessible(page: Page) {
  const { violations } = await new AxeBuilder({ page })
    .withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    .analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  expect(found).toEqual([]);
}

/** Nothing sticks out sideways, neither the page nor a text inside its box. */
export async function expectNoOverflow(page: Page) {
  const wide = await page.evaluate(() => {
    const limit = document.documentElement.clientWidth;
    const outside = [...document.querySelectorAll<HTMLElement>('body *')].filter((element) => {
      const box = element.getBoundingClientRect();
      if (box.width === 0 || box.height === 0 || element.closest('svg, .sr-only')) return false;
      const cut =
        element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX === 'visible';
      return box.right > limit + 1 || box.left < -1 || (cut && element.clientWidth > 0);
    });
    return outside.map((element) => element.outerHTML.slice(0, 120));
  });
  expect(wide).toEqual([]);
}
