// An installation with as many records as a test wants. The first of each kind is made through the API, as a person or an
// assistant would; where thousands are wanted, the others are its copies in the database.
import { execFileSync } from 'node:child_process';
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import path from 'node:path';
import { expect, type Page } from '@playwright/test';
import type { Server } from './server';

const SCRIPT = path.join(import.meta.dirname, 'many.py');

export async function addServer(server: Server, id: string) {
  await server.asAdmin('POST', '/servers', { id, name: `Server ${id}`, host: '192.0.2.1' });
}

export async function addInstances(server: Server, serverId: string, count: number) {
  for (let index = 1; index <= count; index += 1)
    await server.asAdmin('POST', '/assistant-instances', {
      id: nameOf(index),
      name: `Assistant a ${index}`,
      server_id: serverId,
      gateway_port: 2_000 + 12 * index,
      model: 'gpt-4o',
    });
}

/** What a server has to run with for `addMany`. */
const MASTER_KEY = randomBytes(32);
export const MANY_SETTINGS = {
  TIDEPOOL_PROVIDER_ECHO: 'true',
  TIDEPOOL_MASTER_KEY: MASTER_KEY.toString('base64'),
};

/** As the server seals: what is copied from another row does not open. */
function sealed(table: string, column: string, id: string, secret: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', MASTER_KEY, nonce);
  cipher.setAAD(Buffer.from(`${table}\0${column}\0${id}`));
  const body = Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]);
  const key = createHash('sha256').update(MASTER_KEY).digest('hex').slice(0, 8);
  return `${key}.${body.toString('base64').replace(/=+$/, '')}`;
}

const nameOf = (index: number) => `a-${String(index).padStart(4, '0')}`;

/** A server with so many instances, employees and requests each; it has to run with `MANY_SETTINGS`. */
export async function addMany(server: Server, count: number) {
  await addServer(server, 'big');
  await addInstances(server, 'big', 1);
  const employee = { email: 'employee1@example.test', name: 'Employee 1', department: 'Research' };
  await server.asAdmin('POST', '/users', employee);
  await addRequest(server);
  const spec = [
    {
      table: 'instance',
      count,
      columns: {
        id: `printf('a-%04d', n)`,
        id_key: `printf('a-%04d', n)`,
        name: `printf('Assistant a %d', n)`,
        gateway_token: Array.from({ length: count - 1 }, (_, index) =>
          sealed('instance', 'gateway_token', nameOf(index + 2), randomBytes(24).toString('hex')),
        ),
        gateway_port: '2000 + 12 * n',
        gateway_url: `replace(gateway_url, '2012', 2000 + 12 * n)`,
        health_status: `CASE n % 7 WHEN 3 THEN 'unhealthy' WHEN 5 THEN 'healthy' ELSE health_status END`,
        created_at: 'created_at + n',
      },
    },
    {
      table: 'users',
      count,
      columns: {
        id: `printf('employee-%d', n)`,
        email: `printf('employee%d@example.test', n)`,
        email_key: `printf('employee%d@example.test', n)`,
        name: `printf('Employee %d', n)`,
        department: `CASE n % 3 WHEN 0 THEN 'Research' WHEN 1 THEN 'Sales' ELSE 'Support' END`,
        created_at: 'created_at + n',
      },
    },
    {
      table: 'request_log',
      count,
      columns: { id: '', request_id: `printf('request-%d', n)`, duration_ms: 'duration_ms + n' },
    },
    // Their sums, of as many requests a day.
    { table: 'usage_daily', count: 30, columns: { date: `date(date, printf('-%d days', n - 1))` } },
  ];
  execFileSync('python3', [SCRIPT, server.databaseFile], {
    input: JSON.stringify(spec),
    stdio: ['pipe', 'inherit', 'inherit'],
  });
}

/** A request through the gateway itself; answers when the log has it. */
async function addRequest(server: Server) {
  const { secret } = (await server.asAdmin('POST', '/keys', { name: 'browser-test' })) as { secret: string };
  const response = await fetch(`${server.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'ebb and flow' }] }),
  });
  if (!response.ok) throw new Error(`gateway: ${response.status} ${await response.text()}`);
  await response.text();
  const end = Date.now() + 30_000;
  while (Date.now() < end) {
    const { total } = (await server.asAdmin('GET', '/llm-request-logs')) as { total: number };
    if (total > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error('the request is not in the log after 30 s');
}

/** From another page of the console, how long a click takes until a page of the instances is on the screen. */
export async function clickToPaint(page: Page): Promise<number> {
  await page.getByRole('link', { name: 'Settings', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Administrators and settings');
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const start = performance.now();
        document.querySelector<HTMLElement>('nav a[href$="/instances"]')?.click();
        const look = () => {
          if (document.querySelectorAll('tbody tr').length < 50) requestAnimationFrame(look);
          // One frame later what is in the document is also on the screen.
          else requestAnimationFrame(() => resolve(performance.now() - start));
        };
        look();
      }),
  );
}
