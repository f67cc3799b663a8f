// nginx and Caddy with TLS in front of the binary, by the configurations that docs/proxy.md shows.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { endWithUs, freePort, Server } from './server';

const PAGE = path.join(import.meta.dirname, '../../docs/proxy.md');
const BINARIES = { nginx: '/usr/sbin/nginx', caddy: '/usr/bin/caddy' };

export type ProxyKind = keyof typeof BINARIES;
export const isInstalled = (kind: ProxyKind) => existsSync(BINARIES[kind]);

/** Browsers lead every name below localhost to this machine. */
const NAME = 'tidepool.localhost';
const CONSOLE = 'console.localhost';
const WINDOW = 'window.localhost';

export class Proxied {
  private process: ChildProcess | undefined;
  private said = '';

  private constructor(
    readonly server: Server,
    private readonly port: number,
    private readonly folder: string,
  ) {}

  get employeeUrl() {
    return `https://${NAME}:${this.port}/portal`;
  }

  get adminUrl() {
    return `https://${CONSOLE}:${this.port}`;
  }

  /** What the assistants' gateways allow. */
  get windowUrl() {
    return `https://${WINDOW}:${this.port}`;
  }

  /** Where an assistant's own window is shown. */
  windowOf(id: string) {
    return `https://${id}.${WINDOW}:${this.port}`;
  }

  /** `change` gives the configuration of the page a fault, `settings` the server's. */
  static async start(
    kind: ProxyKind,
    change: (configuration: string) => string = (same) => same,
    settings: Record<string, string> = {},
  ): Promise<Proxied> {
    const port = await freePort();
    const folder = await mkdtemp(path.join(tmpdir(), 'tidepool-proxy-'));
    const shown = Object.fromEntries(
      block('ini')
        .trim()
        .split('\n')
        .map((line) => line.split('=') as [string, string])
        .map(([name, value]) => [name, withNames(value, port)]),
    );
    const server = await Server.start(() => ({ TIDEPOOL_PROVIDER_ECHO: 'true', ...shown, ...settings }));
    const proxied = new Proxied(server, port, folder);
    try {
      await proxied.run(kind, change);
    } catch (error) {
      await proxied.stop();
      throw error;
    }
    return proxied;
  }

  async stop() {
    const child = this.process;
    if (child?.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    }
    await this.server.stop();
    await rm(this.folder, { recursive: true, force: true });
  }

  private async run(kind: ProxyKind, change: (configuration: string) => string) {
    const { folder } = this;
    const certificate = { pem: path.join(folder, 'own.pem'), key: path.join(folder, 'own.key') };
    const subject = [
      '-subj',
      `/CN=${NAME}`,
      '-addext',
      `subjectAltName=DNS:${NAME},DNS:${CONSOLE},DNS:*.${WINDOW}`,
    ];
    const kinds = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
    execFileSync(
      'openssl',
      ['req', ...kinds, ...subject, '-keyout', certificate.key, '-out', certificate.pem],
      {
        stdio: 'ignore',
      },
    );
    const shown = change(this.withAddresses(block(kind)));
    const file = path.join(folder, 'proxy.conf');
    if (kind === 'nginx') {
      const own = replaced(shown, [
        ['listen 443 ssl', `listen 127.0.0.1:${this.port} ssl`],
        ['/etc/ssl/example.com.pem', certificate.pem],
        ['/etc/ssl/example.com.key', certificate.key],
        ['server_name example.com', `server_name ${NAME}`],
        ['/etc/ssl/console.example.com.pem', certificate.pem],
        ['/etc/ssl/console.example.com.key', certificate.key],
        ['server_name console.example.com', `server_name ${CONSOLE}`],
        ['/etc/ssl/window.example.com.pem', certificate.pem],
        ['/etc/ssl/window.example.com.key', certificate.key],
        ['server_name *.window.example.com', `server_name *.${WINDOW}`],
      ]);
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((part) => `${part}_temp_path ${folder}/${part};`)
        .join('\n');
      await writeFile(
        file,
        `pid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${own}\n}\n`,
      );
      this.spawn(BINARIES.nginx, ['-c', file, '-p', folder, '-e', 'stderr', '-g', 'daemon off;']);
    } else {
      const tls = `\n\ttls ${certificate.pem} ${certificate.key}\n\tbind 127.0.0.1`;
      const own = replaced(shown, [
        ['*.window.example.com {', `${this.windowOf('*')} {${tls}`],
        ['\nconsole.example.com {', `\nhttps://${CONSOLE}:${this.port} {${tls}`],
        ['\nexample.com {', `\nhttps://${NAME}:${this.port} {${tls}`],
      ]);
      await writeFile(file, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${own}`);
      this.spawn(BINARIES.caddy, ['run', '--adapter', 'caddyfile', '--config', file]);
    }
    await this.listening();
  }

  private spawn(binary: string, args: string[]) {
    const env = {
      ...process.env,
      HOME: this.folder,
      XDG_DATA_HOME: this.folder,
      XDG_CONFIG_HOME: this.folder,
    };
    const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    this.process = child;
    child.stderr.on('data', (piece: Buffer) => (this.said += piece.toString()));
    endWithUs(child);
  }

  private async listening() {
    const end = Date.now() + 15_000;
    while (Date.now() < end && this.process?.exitCode === null) {
      const open = await new Promise<boolean>((resolve) => {
        const socket = connect(this.port, '127.0.0.1', () => resolve(true));
        socket.on('error', () => resolve(false));
        socket.on('connect', () => socket.destroy());
      });
      if (open) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`the proxy did not start: ${this.said}`);
  }

  private withAddresses(configuration: string): string {
    const { server } = this;
    return replaced(`\n${configuration}`, [
      ['127.0.0.1:8080', new URL(server.employeeUrl).host],
      ['127.0.0.1:8081', new URL(server.adminUrl).host],
      ['127.0.0.1:8083', new URL(server.embedUrl).host],
    ]);
  }
}

/** The page's block in this language. */
function block(language: string): string {
  const found = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(readFileSync(PAGE, 'utf8'))?.[1];
  if (found === undefined) throw new Error(`docs/proxy.md has no block of ${language}`);
  return found;
}

const withNames = (text: string, port: number) =>
  text
    .replace('https://*.window.example.com', `https://*.${WINDOW}:${port}`)
    .replace('https://console.example.com', `https://${CONSOLE}:${port}`)
    .replace('https://example.com', `https://${NAME}:${port}`);

/** What is not there to be replaced would be tried with the page's own addresses. */
export function replaced(text: string, changes: [string, string][]): string {
  return changes.reduce((now, [from, to]) => {
    if (!now.includes(from)) throw new Error(`docs/proxy.md does not say "${from.trim()}" any more`);
    return now.replaceAll(from, to);
  }, text);
}
