// Both apps behind one reverse proxy, each below a path of its own, as an installation with a single public name has them.
import { createServer, request, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, logIn, test } from './fixtures';
import { Server } from './server';

/** Strips the prefix and passes on; an address outside the prefixes is a 404, so a link that forgets them is noticed. */
async function proxy(targets: Map<string, string>): Promise<{ url: string; server: HttpServer }> {
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '/';
    const prefix = [...targets.keys()].find((candidate) => path.startsWith(`${candidate}/`));
    const target = prefix === undefined ? undefined : targets.get(prefix);
    if (prefix === undefined || target === undefined) {
      outgoing.writeHead(404).end('outside the prefixes');
      return;
    }
    const options = { method: incoming.method, headers: incoming.headers };
    const passed = request(target + path.slice(prefix.length), options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.writeHead(502).end());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

test('both apps work below path prefixes of one origin', async ({ page }) => {
  const targets = new Map<string, string>();
  const front = await proxy(targets);
  const server = await Server.start(() => ({
    TIDEPOOL_PUBLIC_URL: `${front.url}/portal`,
    TIDEPOOL_ADMIN_PUBLIC_URL: `${front.url}/console`,
  }));
  try {
    targets.set('/portal', server.employeeUrl).set('/console', server.adminUrl);
    const employee = await server.newEmployee();

    await page.goto(`${front.url}/portal/profile`);
    await expect(page).toHaveURL(`${front.url}/portal/login?next=%2Fprofile`);
    await logIn(page, employee);
    await expect(page).toHaveURL(`${front.url}/portal/profile`);
    await page.getByRole('link', { name: 'Chat', exact: true }).click();
    await expect(page).toHaveURL(`${front.url}/portal/`);
    await expect(page.getByRole('main').getByText(employee.email)).toBeVisible();
    await page.reload();
    await expect(page.getByRole('main').getByText(employee.email)).toBeVisible();

    await page.goto(`${front.url}/console/`);
    await expect(page).toHaveURL(`${front.url}/console/login`);
    await logIn(page, server.admin);
    await expect(page.getByRole('main').getByText(server.admin.email)).toBeVisible();
    await page.getByRole('link', { name: 'Settings', exact: true }).click();
    await expect(page.getByRole('link', { name: /Open the reference/ })).toHaveAttribute(
      'href',
      'api/v1/docs',
    );

    await page.goto(`${front.url}/portal/`);
    await expect(page.getByRole('main').getByText(employee.email)).toBeVisible();
  } finally {
    // What it still asks for would break off.
    await page.goto('about:blank');
    await server.stop();
    front.server.close();
  }
});
