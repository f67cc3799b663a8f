// The console of each role: the navigation has the pages that it can read, an address that it cannot read says so, and no page asks
// for anything that the server refuses.
import type { Page } from '@playwright/test';
import {
  expect,
  expectAccessibleInBothThemes,
  expectNoOverflow,
  openPlace,
  openSignedIn,
  test,
  type AppUnderTest,
} from './fixtures';
import places from './places.json' with { type: 'json' };
import { recordSecrets, type Server } from './server';

const ROLES = ['super_admin', 'admin', 'operator', 'auditor'] as const;
type Role = (typeof ROLES)[number];

const EVERYBODY = [
  'Overview',
  'Instances',
  'Servers',
  'Professions and pool',
  'Marketplace',
  'Keys and models',
  'Tasks',
  'Jobs',
  'Guardian',
  'Settings',
  'Profile',
];
const OFFICE = ['Employees', 'Usage', 'Request log', 'Audit'];
const REFUSED = 'Your role cannot read this.';

/** An address that the role cannot read, and what it leads to. Administrators read all of them. */
const FORBIDDEN: Partial<Record<Role, { place: string; heading: string }>> = {
  operator: { place: '/users', heading: 'Employees' },
  auditor: { place: '/instances?open=fra-1-a&tab=log', heading: 'Frankfurt 1 A' },
};

/** The console of somebody with this role, made once for each. */
async function consoleOf(role: Role, demo: Server, app: AppUnderTest): Promise<AppUnderTest> {
  const account = { email: `${role}-${Date.now()}@example.test`, password: 'four-hats-on-a-shelf' };
  await demo.asAdmin('POST', '/admin-users', { ...account, name: role, role });
  await recordSecrets([account.password]);
  return { ...app, account };
}

/** Answers that the server refused, as they come. */
function refusals(page: Page): string[] {
  const refused: string[] = [];
  page.on('response', (response) => {
    if (response.status() === 403) refused.push(`${response.request().method()} ${response.url()}`);
  });
  return refused;
}

for (const role of ROLES)
  test.describe(role, () => {
    test('the navigation has what it can read, and one address says what it cannot', async ({
      page,
      demo,
      app,
    }) => {
      const theirs = await consoleOf(role, demo, app);
      const refused = refusals(page);
      await openSignedIn(page, theirs, demo);
      const navigation = page.getByRole('navigation');
      const expected = role === 'operator' ? EVERYBODY : [...EVERYBODY, ...OFFICE];
      await expect(navigation.getByRole('link')).toHaveCount(expected.length);
      for (const name of expected)
        await expect(navigation.getByRole('link', { name, exact: true })).toBeVisible();

      const forbidden = FORBIDDEN[role];
      if (forbidden) {
        await openPlace(page, theirs, forbidden.place);
        await expect(page.getByText(REFUSED)).toBeVisible();
        await expect(page.getByRole('heading', { name: forbidden.heading }).first()).toBeVisible();
        await expectAccessibleInBothThemes(page);
        await page.setViewportSize({ width: 320, height: 812 });
        // The tabs of a panel are wider than a phone, and scroll.
        if (!forbidden.place.includes('open=')) await expectNoOverflow(page);
      } else {
        await openPlace(page, theirs, '/users');
        await expect(page.getByRole('table')).toBeVisible();
        await expect(page.getByText(REFUSED)).toHaveCount(0);
      }
      expect(refused).toEqual([]);
    });

    test('no page asks for what the server refuses', async ({ page, demo, app, watch }) => {
      test.slow();
      // A simulated server need not run containers.
      watch.allow(/status of (409|503) .*\/(containers|config|logs)/);
      const theirs = await consoleOf(role, demo, app);
      const refused = refusals(page);
      const { list: users } = (await demo.asAdmin('GET', '/users')) as { list: { id: string }[] };
      const { list: tasks } = (await demo.asAdmin('GET', '/tasks')) as { list: { id: string }[] };
      const { list: items } = (await demo.asAdmin('GET', '/marketplace-items')) as { list: { id: string }[] };
      const { list: requests } = (await demo.asAdmin('GET', '/llm-request-logs')) as {
        list: { id: number }[];
      };
      const ids: Record<string, string> = {
        instance: 'fra-1-a',
        server: 'fra-1',
        user: users[0]?.id ?? '',
        task: tasks[0]?.id ?? '',
        item: items[0]?.id ?? '',
        request: String(requests[0]?.id ?? ''),
      };
      await openSignedIn(page, theirs, demo);
      for (const place of places.admin) {
        if (place === '/login') continue;
        await page.goto(theirs.url + place.replace(/\{(\w+)\}/, (_, name: string) => ids[name] ?? ''));
        // A dialog that opens with the page hides the page's own heading.
        await expect(
          page.getByRole('heading', { level: 1 }).or(page.getByRole('dialog')).first(),
        ).toBeVisible();
        await expect(page.getByText('Loading…')).toHaveCount(0);
      }
      expect(refused).toEqual([]);
    });
  });

test('an operator manages servers and no people; an auditor changes nothing', async ({ page, demo, app }) => {
  const main = page.getByRole('main');
  const operator = await consoleOf('operator', demo, app);
  await openSignedIn(page, operator, demo, '/servers');
  await expect(main.getByRole('button', { name: 'Add a server' })).toBeVisible();
  await openPlace(page, operator, '/');
  await expect(main.getByRole('heading', { name: 'Employees' })).toHaveCount(0);
  await expect(main.getByRole('heading', { name: 'Task queue' })).toBeVisible();
  await openPlace(page, operator, '/instances?open=fra-1-a');
  const panel = page.getByRole('dialog', { name: 'Frankfurt 1 A' });
  await expect(panel.getByRole('button', { name: 'Edit' })).toBeVisible();
  await expect(panel.getByRole('button', { name: 'Show Gateway token' })).toHaveCount(0);

  const auditor = await consoleOf('auditor', demo, app);
  await openSignedIn(page, auditor, demo, '/servers/fra-1');
  await expect(main.getByRole('button', { name: /^(Edit|Prepare|Run)$/ })).toHaveCount(0);
  await openPlace(page, auditor, '/users');
  await expect(page.getByRole('table')).toBeVisible();
  await expect(page.getByRole('checkbox')).toHaveCount(0);
  await expect(main.getByRole('button', { name: 'Add an employee' })).toHaveCount(0);
  await openPlace(page, auditor, '/instances?open=fra-1-a');
  await expect(panel.getByText('Gateway token')).toBeVisible();
  await expect(panel.getByRole('button', { name: /Edit|Show|Copy|Actions/ })).toHaveCount(0);
});

test('administrators get one of four roles, each with a sentence, in both languages', async ({
  page,
  demo,
  app,
}) => {
  await openSignedIn(page, app, demo, '/settings');
  await page.getByRole('button', { name: 'Add an administrator' }).click();
  const form = page.getByRole('dialog', { name: 'Add an administrator' });
  const role = form.getByLabel('Role');
  for (const [name, sentence] of [
    ['Super administrator', /May do everything/],
    ['Administrator', /Looks after people/],
    ['Operator', /Looks after servers/],
    ['Auditor', /Changes nothing/],
  ] as const) {
    await role.selectOption({ label: name });
    await expect(role).toHaveAccessibleDescription(sentence);
  }
  const email = `reader-${Date.now()}@example.test`;
  await form.getByLabel('E-mail').fill(email);
  await form.getByRole('button', { name: 'Add an administrator' }).click();
  await expect(page.getByRole('listitem').filter({ hasText: email })).toContainText('Auditor');

  await page.evaluate(() => localStorage.setItem('tidepool.language', 'zh'));
  await openPlace(page, app, '/settings');
  await expect(page.getByRole('listitem').filter({ hasText: email })).toContainText('审计员');
  await expect(page.getByText(/负责服务器和实例/)).toBeVisible();
});
