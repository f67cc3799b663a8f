// Both apps behind nginx and Caddy as docs/proxy.md has them: TLS, path prefixes, the live chat's WebSocket, the window, events.
import { addLocalServer, Assistant } from './assistant';
import { expect, logIn, test } from './fixtures';
import { isInstalled, Proxied, replaced, type ProxyKind } from './proxy';
import { composer, replies, say } from './workplace';

test.use({ ignoreHTTPSErrors: true });

/** An employee with an assistant that runs; `work` is done while all of it is up. */
async function withAssistant(
  proxied: Proxied,
  work: (employee: { email: string; password: string }) => Promise<void>,
) {
  let assistant: Assistant | undefined;
  try {
    const employee = await proxied.server.newEmployee();
    const host = await addLocalServer(proxied.server);
    assistant = await Assistant.start(proxied.server, host, 'pearl', employee.id, proxied.windowUrl);
    await work(employee);
  } finally {
    await assistant?.stop();
    await proxied.stop();
  }
}

for (const kind of ['nginx', 'caddy'] as const satisfies ProxyKind[]) {
  test(`${kind}: login, live chat below a path, window and console at names of their own, with TLS`, async ({
    page,
    watch,
  }) => {
    test.skip(!isInstalled(kind), `${kind} is not installed (testbed/install.sh ${kind})`);
    test.setTimeout(120_000);
    // The certificate is our own, and the servers are ended while a page is open.
    watch.allow(/ERR_CERT|ERR_CONNECTION|ERR_INCOMPLETE|ERR_HTTP2|ERR_NETWORK/);
    const proxied = await Proxied.start(kind);
    await withAssistant(proxied, async (employee) => {
      const window_ = proxied.windowOf('pearl');
      watch.allowOrigin(window_);
      watch.allowOrigin(proxied.adminUrl);
      await page.goto(`${proxied.employeeUrl}/`);
      await logIn(page, employee);
      await expect(page).toHaveURL(`${proxied.employeeUrl}/`);
      const socket = page.waitForEvent('websocket');
      await page.reload();
      expect((await socket).url()).toContain(proxied.employeeUrl.replace('https:', 'wss:'));
      await expect(page.getByText('Live', { exact: true })).toBeVisible();
      await say(page, 'count 20');
      await expect(replies(page).last()).toContainText('word20');

      await page.getByRole('button', { name: 'More about this chat' }).click();
      await page.getByRole('menuitemradio', { name: /own window/ }).click();
      await expect(page.frameLocator('iframe').locator('openclaw-app')).toBeAttached();
      await expect(page.locator('iframe')).toHaveAttribute('src', new RegExp(`^${window_}/e/`));

      await page.goto(`${proxied.adminUrl}/`);
      await logIn(page, proxied.server.admin);
      await expect(page.getByRole('button', { name: 'Pause live updates' })).toContainText('Live');
      await page.goto('about:blank');
    });
  });
}

const NO_UPGRADE: [string, string][] = [
  ['    proxy_set_header Upgrade $http_upgrade;\n', ''],
  ['    proxy_set_header Connection $connection_upgrade;\n', ''],
];

const FAULTS: {
  name: string;
  change: (shown: string) => string;
  settings: Record<string, string>;
  says: string;
  remedy: string;
}[] = [
  {
    name: 'no upgrade',
    change: (shown) => replaced(shown, NO_UPGRADE),
    settings: {},
    says: 'does not pass on WebSocket connections',
    remedy: 'forward the Upgrade and Connection headers',
  },
  {
    name: 'origin refused',
    change: (shown) =>
      replaced(shown, [['proxy_set_header Host $http_host;', 'proxy_set_header Host inner.example;']]),
    settings: { TIDEPOOL_PUBLIC_URL: 'https://another.localhost/portal' },
    says: 'refuses connections from this page’s address',
    remedy: 'TIDEPOOL_PUBLIC_URL',
  },
];

for (const { name, change, settings, says, remedy } of FAULTS) {
  test(`nginx with a fault: the page names it (${name}), and the model answers meanwhile`, async ({
    page,
    watch,
  }) => {
    test.skip(!isInstalled('nginx'), 'nginx is not installed (testbed/install.sh nginx)');
    test.setTimeout(120_000);
    watch.allow(/WebSocket connection|status of|ERR_CERT|ERR_CONNECTION/);
    const proxied = await Proxied.start('nginx', change, settings);
    await withAssistant(proxied, async (employee) => {
      await page.goto(`${proxied.employeeUrl}/`);
      await logIn(page, employee);
      await expect(page.getByText(says)).toBeVisible({ timeout: 20_000 });
      await expect(page.getByText(remedy)).toBeVisible();
      await expect(composer(page)).toBeVisible();
      await say(page, 'still there');
      await expect(replies(page).last()).toContainText('still there');
      await page.goto('about:blank');
    });
  });
}
