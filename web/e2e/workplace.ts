// A server with a model behind it and people who have assistants: what the employee tests work with.
import type { Page } from '@playwright/test';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { expect, test as base } from './fixtures';
import { ModelServer } from './model-server';
import { Server, type Account } from './server';

const INSTALL = path.join(import.meta.dirname, 'install.py');

export interface Employee extends Account {
  id: string;
  /** Their instances' ids, the first bound first. */
  instances: string[];
}

export class Workplace {
  private instances = 0;
  private host = '';

  private constructor(
    readonly server: Server,
    readonly model: ModelServer,
  ) {}

  static async start(): Promise<Workplace> {
    const model = await ModelServer.start();
    const server = await Server.start(() => ({
      TIDEPOOL_PROVIDER_OPENAI_URL: model.url,
      TIDEPOOL_PROVIDER_OPENAI_KEY: 'test-provider-key',
    }));
    const place = new Workplace(server, model);
    // Nothing listens there: whatever wants to reach the host fails, the chat over the platform does not.
    const host = { name: 'Harbour', host: '127.0.0.1', ssh_port: 1 };
    place.host = ((await server.asAdmin('POST', '/servers', host)) as { id: string }).id;
    return place;
  }

  async close() {
    await this.server.stop();
    this.model.stop();
  }

  async newInstance(name?: string): Promise<string> {
    this.instances += 1;
    const id = `pool-${this.instances}`;
    await this.server.asAdmin('POST', '/assistant-instances', {
      id,
      name: name ?? `Assistant ${this.instances}`,
      server_id: this.host,
      model: 'gpt-4o',
    });
    return id;
  }

  /** One that can be claimed: on its server, as the records have it. */
  async newReadyInstance(name?: string): Promise<string> {
    const id = await this.newInstance(name);
    execFileSync('python3', [INSTALL, this.server.databaseFile, id], { stdio: 'inherit' });
    return id;
  }

  async newEmployee(instances = 1): Promise<Employee> {
    const employee = await this.server.newEmployee();
    const ids: string[] = [];
    for (let made = 0; made < instances; made += 1) {
      const id = await this.newInstance();
      await this.server.asAdmin('POST', `/users/${employee.id}/assign-instance`, { instance_id: id });
      ids.push(id);
    }
    return { ...employee, instances: ids };
  }

  async newProfession(name: string, stock: number): Promise<string> {
    const body = {
      name,
      code: name.toLowerCase().replaceAll(' ', '-'),
      icon: '🐚',
      tagline: `Works as ${name}`,
    };
    const { id } = (await this.server.asAdmin('POST', '/professions', body)) as { id: string };
    for (let made = 0; made < stock; made += 1) {
      const instance_id = await this.newReadyInstance();
      await this.server.asAdmin('POST', '/profession-pool', { profession_id: id, instance_id });
    }
    return id;
  }

  async open(page: Page, employee: Employee, place = '/') {
    await openAs(page, this.server, employee, place);
  }
}

/** A test with a workplace, one for all tests of a worker. */
export const test = base.extend<object, { place: Workplace }>({
  place: [
    // eslint-disable-next-line no-empty-pattern -- Playwright reads the fixture's needs from this pattern.
    async ({}, use) => {
      const place = await Workplace.start();
      await use(place);
      await place.close();
    },
    { scope: 'worker', timeout: 60_000 },
  ],
});

/** Opens a place of the employee app signed in. */
export async function openAs(page: Page, server: Server, account: Account, place = '/') {
  const token = await server.token(server.employeeUrl, account);
  // A page of the same origin that is quickly there.
  await page.goto(`${server.employeeUrl}/healthz`);
  await page.evaluate((value) => localStorage.setItem('tidepool.employee.token', value), token);
  await page.goto(server.employeeUrl + place);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await expect(page.getByText('Loading…')).toHaveCount(0);
}

const ok = (data: unknown) => ({ json: { code: '0000', data, msg: 'ok' } });

/** The chat goes over the platform, as somebody chooses who wants no live connection. */
export async function withoutRelay(page: Page) {
  await page.addInitScript(() => {
    const stored = Reflect.get<Storage, 'getItem'>(Storage.prototype, 'getItem');
    Storage.prototype.getItem = function (key: string) {
      const value = stored.call(this, key);
      return value === null && key.startsWith('tidepool.engine.') ? 'gateway' : value;
    };
  });
}

export interface Saved {
  role: string;
  content: string;
  tokens: number;
  instance_id: string;
}

/** Takes the saves in the server's place and remembers them. */
export async function withSaves(page: Page, answer: () => 'ok' | 'fail' = () => 'ok'): Promise<Saved[]> {
  const saved: Saved[] = [];
  await page.route('**/me/chat/save', async (route) => {
    saved.push(route.request().postDataJSON() as Saved);
    await route.fulfill(
      answer() === 'ok' ? ok(null) : { status: 500, json: { code: '5001', data: null, msg: 'save failed' } },
    );
  });
  return saved;
}

export async function withHistory(page: Page, messages: object[] = []) {
  await page.route('**/me/chat/history?*', (route) =>
    route.fulfill(ok({ messages, total: messages.length, page: 1, size: 50 })),
  );
}

export const composer = (page: Page) => page.getByRole('textbox', { name: /^Message to/ });
export const thread = (page: Page) => page.getByRole('log');
export const replies = (page: Page) => page.getByRole('article', { name: 'Assistant' });

export async function say(page: Page, text: string) {
  await composer(page).fill(text);
  await composer(page).press('Enter');
}
