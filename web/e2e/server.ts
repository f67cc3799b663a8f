// Starts the real binary on free loopback ports with a data folder of its own, and ends it by its pid.
import { spawn, type ChildProcess } from 'node:child_process';
import { openSync, readFileSync, statfsSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ADMIN = { email: 'root@example.test', password: 'harbour-light-4711' };
/** Of `tidepool-lab demo`, which has sample data and simulated servers. */
const DEMO_ADMIN = { email: 'admin@demo.example', password: 'tidepool-demo' };
const START_SECONDS = 30;
const DEMO_SECONDS = 100;
/** For the folders of all servers of a run. */
const ROOM_BYTES = 512 * 1024 * 1024;
/** So much of a log is shown with a test that failed. */
const TAIL_LINES = 30;

/** All that this process started: a test that fails shows what they wrote last. */
const started = new Set<Server>();

export interface Account {
  email: string;
  password: string;
}

export class Server {
  private employees = 0;
  private adminToken: Promise<string> | undefined;
  /** The end of the log of a server that was stopped: its folder is gone. */
  private lastLines: string | undefined;

  private constructor(
    /** What it was started as, and where; a file can have this name. */
    readonly name: string,
    private readonly log: string,
    readonly employeeUrl: string,
    readonly adminUrl: string,
    readonly gatewayUrl: string,
    readonly embedUrl: string,
    private readonly process: ChildProcess,
    private readonly folder: string,
    private readonly bots: HttpServer,
    /** The first super administrator, whom the binary creates at its first start. */
    readonly admin: Account,
  ) {}

  /** The origin at which an assistant's own window is shown. */
  windowOf(id: string): string {
    return this.embedUrl.replace('127.0.0.1', `${id}.localhost`);
  }

  get databaseFile(): string {
    return path.join(this.folder, 'data', 'tidepool.db');
  }

  /** `settings` sees the listeners' addresses, since some settings have to name them. */
  static async start(
    settings: (urls: {
      employee: string;
      admin: string;
      embed: string;
    }) => Record<string, string> = () => ({}),
    command: 'serve' | 'demo' = 'serve',
  ): Promise<Server> {
    const { employee, admin, gateway, embed } = await freeAddresses();
    const bots = await botPlatform();
    const urls = { employee: `http://${employee}`, admin: `http://${admin}`, embed: `http://${embed}` };
    const folder = await mkdtemp(path.join(dataFolder(), 'tidepool-e2e-'));
    // The whole run's secret search also reads what the servers wrote.
    const logs = process.env.TIDEPOOL_TEST_TRACE_DIR ?? folder;
    await mkdir(logs, { recursive: true });
    const log = path.join(logs, `browser-server-${employee.replace(':', '-')}.log`);
    const out = openSync(log, 'a');
    const product = path.resolve(
      process.env.TIDEPOOL_TEST_BIN ?? path.join(import.meta.dirname, '../../target/debug/tidepool'),
    );
    // The demo is another program, which lies beside the product's.
    const binary = command === 'demo' ? path.join(path.dirname(product), 'tidepool-lab') : product;
    const child = spawn(binary, [command], {
      stdio: ['ignore', out, out],
      cwd: folder,
      env: {
        ...inherited(),
        TIDEPOOL_DATA_DIR: path.join(folder, 'data'),
        TIDEPOOL_EMPLOYEE_LISTEN: employee,
        TIDEPOOL_ADMIN_LISTEN: admin,
        TIDEPOOL_GATEWAY_LISTEN: gateway,
        TIDEPOOL_EMBED_LISTEN: embed,
        // Some assistants of the tests run on this machine.
        TIDEPOOL_LOCAL_SERVER: 'true',
        TIDEPOOL_BOT_API_URL: `http://127.0.0.1:${(bots.address() as AddressInfo).port}`,
        TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL: ADMIN.email,
        TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD: ADMIN.password,
        ...settings(urls),
      },
    });
    child.on('error', (error) => console.error(`${binary}: ${error.message}`));
    endWithUs(child);
    const server = new Server(
      `tidepool-${command}-${employee.replace(':', '-')}`,
      log,
      urls.employee,
      urls.admin,
      `http://${gateway}`,
      urls.embed,
      child,
      folder,
      bots,
      command === 'demo' ? DEMO_ADMIN : ADMIN,
    );
    started.add(server);
    try {
      await Promise.all([
        answers(`${urls.employee}/healthz`, child),
        answers(`${urls.admin}/healthz`, child),
      ]);
      // Its assistants are made and looked at after it answers.
      if (command === 'demo') await says(log, 'Ctrl-C ends the demo', child);
    } catch (error) {
      const written = readFileSync(log, 'utf8').trim();
      await server.stop();
      throw new Error(`${binary} ${command} did not start: ${String(error)}\n${written}`, { cause: error });
    }
    await recordSecrets([ADMIN.password]);
    return server;
  }

  async stop() {
    if (
      this.process.exitCode === null &&
      this.process.signalCode === null &&
      this.process.pid !== undefined
    ) {
      const ended = new Promise((resolve) => this.process.once('exit', resolve));
      this.process.kill('SIGTERM');
      const late = setTimeout(() => this.process.kill('SIGKILL'), 5_000);
      await ended;
      clearTimeout(late);
    }
    this.bots.close();
    this.lastLines ??= tailOf(this.log);
    await rm(this.folder, { recursive: true, force: true });
  }

  /** The last lines of what it wrote. */
  get tail(): string {
    return this.lastLines ?? tailOf(this.log);
  }

  /** What of all that it wrote has this form. */
  written(pattern: RegExp): RegExpExecArray {
    const found = pattern.exec(readFileSync(this.log, 'utf8'));
    if (found === null) throw new Error(`it did not write ${String(pattern)}`);
    return found;
  }

  /** Those that ran at some time since this was asked last. */
  static takeStarted(): Server[] {
    const all = [...started];
    for (const server of all) if (server.lastLines !== undefined) started.delete(server);
    return all;
  }

  /** A fresh employee, made through the administration API. */
  async newEmployee(): Promise<Account & { id: string }> {
    this.employees += 1;
    const account = {
      email: `mina${this.employees}@example.test`,
      password: `low-tide-${this.employees}-walk`,
    };
    const body = { name: 'Mina Okafor', department: 'Research', ...account };
    const { id } = (await this.asAdmin('POST', '/users', body)) as { id: string };
    await recordSecrets([account.password]);
    return { ...account, id };
  }

  async patchEmployee(id: string, fields: { status?: string; quota_daily?: number }) {
    await this.asAdmin('PATCH', `/users/${id}`, fields);
  }

  /** Anything else an administrator can do, by the API. One sign-in serves many calls, until a test ends it. */
  async asAdmin(method: string, path: string, body: unknown = {}): Promise<unknown> {
    const ask = async () => {
      this.adminToken ??= this.token(this.adminUrl, this.admin);
      return call(method, `${this.adminUrl}/api/v1${path}`, body, await this.adminToken);
    };
    return ask().catch((error: unknown) => {
      if (!String(error).includes(': 401 ')) throw error;
      this.adminToken = undefined;
      return ask();
    });
  }

  async token(url: string, account: Account): Promise<string> {
    const data = await call('POST', `${url}/api/v1/auth/login`, account);
    return (data as { token: string }).token;
  }

  /** Ends a token behind the browser's back. */
  async endToken(url: string, token: string) {
    await call('POST', `${url}/api/v1/auth/logout`, {}, token);
  }
}

async function call(method: string, url: string, body: unknown, token?: string): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: method === 'GET' ? undefined : JSON.stringify(body),
  });
  const answer = (await response.json()) as { code: string; data: unknown; msg: string };
  if (answer.code !== '0000')
    throw new Error(`${method} ${url}: ${response.status} ${answer.code} ${answer.msg}`);
  return answer.data;
}

/** The platform of chat-bots: knows every token, and takes everything. */
async function botPlatform(): Promise<HttpServer> {
  const result = { id: 1, is_bot: true, username: 'harbour_bot', url: '', pending_update_count: 0 };
  const server = createHttpServer((incoming, outgoing) => {
    incoming.resume();
    outgoing.setHeader('content-type', 'application/json').end(JSON.stringify({ ok: true, result }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return server;
}

/** In memory, where there is room: on a busy disk a server waits longer for what it writes than a test waits for a page. */
function dataFolder(): string {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm');
    return bavail * bsize > ROOM_BYTES ? '/dev/shm' : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** Settings of somebody's own installation must not reach the tests. */
function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TIDEPOOL_')));
}

/** Addresses for the four listeners. */
async function freeAddresses() {
  const ports = new Set<number>();
  while (ports.size < 4) ports.add(await freePort());
  const [employee, admin, gateway, embed] = [...ports].map((port) => `127.0.0.1:${port}`) as [
    string,
    string,
    string,
    string,
  ];
  return { employee, admin, gateway, embed };
}

/** A child does not outlive the run, however that ends. */
export function endWithUs(child: ChildProcess) {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
}

/** Not one that the kernel gives to whoever asks for any: it would have given it away again before it is used here. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const probe = createServer();
    const free = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}

async function answers(url: string, child: ChildProcess) {
  const end = Date.now() + START_SECONDS * 1000;
  while (Date.now() < end) {
    if (child.exitCode !== null || child.pid === undefined) throw new Error('it ended');
    const healthy = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (healthy) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`no answer from ${url} within ${START_SECONDS} s`);
}

function tailOf(log: string): string {
  return readFileSync(log, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
}

async function says(log: string, words: string, child: ChildProcess) {
  const end = Date.now() + DEMO_SECONDS * 1000;
  while (!readFileSync(log, 'utf8').includes(words)) {
    if (child.exitCode !== null) throw new Error('it ended');
    if (Date.now() > end) throw new Error(`it did not say "${words}" within ${DEMO_SECONDS} s`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function recordSecrets(secrets: string[]) {
  const folder = process.env.TIDEPOOL_TEST_TRACE_DIR;
  if (folder)
    await appendFile(path.join(folder, 'secrets.txt'), secrets.map((secret) => `${secret}\n`).join(''));
}
