// A simulated assistant on this machine (crates/sim, example `assistant`): the platform reaches it by itself, over the server `local`.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { endWithUs, freePort, recordSecrets, type Server } from './server';

const { TIDEPOOL_TEST_ASSISTANT } = process.env;
const BINARY = path.resolve(
  TIDEPOOL_TEST_ASSISTANT ?? path.join(import.meta.dirname, '../../target/debug/examples/assistant'),
);

export class Assistant {
  private process: ChildProcess | undefined;

  private constructor(
    readonly id: string,
    private readonly port: number,
    private readonly token: string,
    private readonly origin: string,
  ) {}

  /** An instance that an employee owns, if one is named, and the program that answers for it. */
  static async start(
    server: Server,
    serverId: string,
    id: string,
    employee: string | null,
    windowUrl = server.embedUrl,
    home?: string,
  ): Promise<Assistant> {
    const port = await freePort();
    const body = {
      id,
      name: `Assistant ${id}`,
      server_id: serverId,
      gateway_port: port,
      model: 'gpt-4o',
      home,
    };
    await server.asAdmin('POST', '/assistant-instances', body);
    if (employee !== null)
      await server.asAdmin('POST', `/users/${employee}/assign-instance`, { instance_id: id });
    const { gateway_token: token } = (await server.asAdmin('GET', `/instances/${id}`)) as {
      gateway_token: string;
    };
    await recordSecrets([token]);
    const assistant = new Assistant(id, port, token, windowUrl);
    await assistant.run();
    return assistant;
  }

  async run() {
    const args = ['--port', String(this.port), '--token', this.token, '--origin', this.origin];
    const child = spawn(BINARY, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.process = child;
    endWithUs(child);
    await new Promise<void>((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', () => reject(new Error(`${BINARY} ended`)));
      child.stdout.on('data', () => resolve());
    });
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  async stop() {
    const child = this.process;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
}

/** This machine as a server of the installation. */
export async function addLocalServer(server: Server): Promise<string> {
  const { id } = (await server.asAdmin('POST', '/servers', { name: 'Harbour', host: 'local' })) as {
    id: string;
  };
  return id;
}

/** This machine's service manager, which test machines may not have: it says of a unit what is true of the assistant's process. */
export class ServiceManager {
  private constructor(readonly folder: string) {}

  static async start(): Promise<ServiceManager> {
    const folder = await mkdtemp(path.join(tmpdir(), 'tidepool-services-'));
    const program = path.join(folder, 'systemctl');
    await writeFile(
      program,
      `#!/bin/sh
for unit; do :; done
pid=$(cat "${folder}/\${unit%.service}.pid" 2>/dev/null)
if [ -n "$pid" ] && [ -d "/proc/$pid" ]; then
  printf '%s\\n' LoadState=loaded ActiveState=active SubState=running Result=success "MainPID=$pid"
elif [ -n "$pid" ]; then
  printf '%s\\n' LoadState=loaded ActiveState=failed SubState=failed Result=signal ExecMainCode=2 ExecMainStatus=9
fi
`,
    );
    await chmod(program, 0o755);
    return new ServiceManager(folder);
  }

  /** What a server has to run with to find it before the machine's own. */
  get settings(): Record<string, string> {
    return { PATH: `${this.folder}:${process.env.PATH ?? ''}` };
  }

  async watch(assistant: Assistant) {
    await writeFile(path.join(this.folder, `openclaw-${assistant.id}.pid`), String(assistant.pid));
  }

  async stop() {
    await rm(this.folder, { recursive: true, force: true });
  }
}
