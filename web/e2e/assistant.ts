// A simulated assistant on this machine (crates/sim, example `assistant`): the platform reaches it by itself, over the server `local`.
import { spawn, type ChildProcess } from 'node:child_process';
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

  /** An instance that an employee owns, and the program that answers for it. */
  static async start(
    server: Server,
    serverId: string,
    id: string,
    employee: string,
    windowUrl = server.embedUrl,
  ): Promise<Assistant> {
    const port = await freePort();
    const body = { id, name: `Assistant ${id}`, server_id: serverId, gateway_port: port, model: 'gpt-4o' };
    await server.asAdmin('POST', '/assistant-instances', body);
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
