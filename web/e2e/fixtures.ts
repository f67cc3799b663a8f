// What every browser test gets: a running server, the two apps as a person meets them, and a watch that fails the test
// on any console error, policy violation or request to another origin.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test as base, expect, type ConsoleMessage, type Locator, type Page } from '@playwright/test';
import type { AxeResults, RunOptions } from 'axe-core';
import { SERVER_LOG } from './failure-reporter';
import { Server, type Account } from './server';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const THEMES = ['light', 'dark'] as const;

export { expect };
export const SIDES = ['employee', 'admin'] as const;
/** From a desk down to a small phone. */
export const WIDTHS = [1280, 768, 375, 320] as const;
export type Side = (typeof SIDES)[number];

export interface Watch {
  /** A failure that the test provokes; everything else stays forbidden. */
  allow: (pattern: RegExp) => void;
  /** Another origin that the test has to visit. */
  allowOrigin: (origin: string) => void;
}

interface TestFixtures {
  watch: Watch;
  /** A test that fails has the last lines of every server that ran meanwhile; failure-reporter.ts prints them. */
  serverLogs: undefined;
  /** The demo's console. */
  app: AppUnderTest;
}

interface WorkerFixtures {
  server: Server;
  /** Sample data and simulated servers. Its tests may change what they name; none counts on what another may change. */
  demo: Server;
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

  demo: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use) => {
      const demo = await Server.start(undefined, 'demo');
      await use(demo);
      await demo.stop();
    },
    { scope: 'worker', timeout: 150_000 },
  ],

  app: async ({ demo }, use) => use(await appOf('admin', demo)),

  serverLogs: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use, testInfo) => {
      await use(undefined);
      const servers = Server.takeStarted();
      if (testInfo.status === testInfo.expectedStatus) return;
      for (const { name, tail } of servers) {
        const file = testInfo.outputPath(`${name}.log`);
        writeFileSync(file, `${tail}\n`);
        testInfo.attachments.push({ name, path: file, contentType: SERVER_LOG });
      }
    },
    { auto: true },
  ],

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

/** Signs in without the login form; answers the token. */
export async function signIn(page: Page, app: AppUnderTest, server: Server): Promise<string> {
  const token = await server.token(app.url, app.account);
  // A page of the same origin that is quickly there.
  await page.goto(`${app.url}/healthz`);
  await page.evaluate(([key, value]) => localStorage.setItem(key, value), [app.tokenKey, token] as const);
  return token;
}

/** Opens `place` signed in; answers the token. */
export async function openSignedIn(
  page: Page,
  app: AppUnderTest,
  server: Server,
  place = '/',
): Promise<string> {
  const token = await signIn(page, app, server);
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

/** axe finds nothing wrong with the page as it is. */
export async function expectAccessible(page: Page) {
  await expectNoViolations(page, { runOnly: AXE_TAGS });
}

/** As `expectAccessible`, in both themes: they are the same but for their colours, so that the second is only looked at for these. */
export async function expectAccessibleInBothThemes(page: Page) {
  await withoutTransitions(page);
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await expect(page.locator('html')).toHaveAttribute('data-theme', theme);
    await expectNoViolations(page, theme === 'light' ? { runOnly: AXE_TAGS } : COLOURS);
  }
}

/** Even a transition that takes no time shows its old colour for a frame, and so does, after it, what inherits the colour. */
async function withoutTransitions(page: Page) {
  await page.evaluate(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('*, ::before, ::after { transition-property: none !important }');
    document.adoptedStyleSheets = [sheet];
  });
}

/** The rules of `AXE_TAGS` that axe has under `cat.color`. */
const COLOURS: RunOptions = { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } };

/** Not by AxeBuilder, which opens another page for each look and has all that is right described, too: that takes three times as long. */
async function expectNoViolations(page: Page, options: RunOptions) {
  expect(page.frames(), 'axe looks into no frame').toHaveLength(1);
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE);
  const found = await page.evaluate(async (chosen) => {
    const { axe } = window as unknown as {
      axe: { run: (where: Document, how: RunOptions) => Promise<AxeResults> };
    };
    // What still fades in has not its own colours yet.
    for (const animation of document.getAnimations()) {
      try {
        animation.finish();
      } catch {
        animation.cancel(); // One without an end.
      }
    }
    const { violations } = await axe.run(document, { ...chosen, resultTypes: ['violations'] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  }, options);
  expect(found, page.url()).toEqual([]);
}

/** The texts of elements that are drawn together, once they are there. */
export async function textsOf(elements: Locator): Promise<string[]> {
  await expect(elements.first()).toBeVisible();
  // eslint-disable-next-line no-restricted-properties -- the line above waits
  return elements.allInnerTexts();
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
  expect(wide, `${page.url()} at ${page.viewportSize()?.width ?? 0} px`).toEqual([]);
}
