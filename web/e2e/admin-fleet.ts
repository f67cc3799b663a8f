// An installation with as many records as a test wants, made through the APIs as a person or an assistant would.
import type { Server } from './server';

const AT_ONCE = 8;
const ATTEMPTS = 5;

/** A busy machine may answer 503, which says that it is to be asked again. */
async function patiently(make: () => Promise<unknown>) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await make();
      return;
    } catch (error) {
      if (attempt === ATTEMPTS || !/: 503 /.test(String(error))) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  }
}

async function many(count: number, make: (index: number) => Promise<unknown>) {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      next += 1;
      const index = next;
      await patiently(() => make(index));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

export async function addServer(server: Server, id: string) {
  await server.asAdmin('POST', '/servers', { id, name: `Server ${id}`, host: '192.0.2.1' });
}

export async function addInstances(server: Server, serverId: string, count: number, prefix = 'a') {
  await many(count, (index) =>
    server.asAdmin('POST', '/assistant-instances', {
      id: `${prefix}-${String(index).padStart(4, '0')}`,
      name: `Assistant ${prefix} ${index}`,
      server_id: serverId,
      gateway_port: 2_000 + 12 * index,
      model: 'gpt-4o',
    }),
  );
}

export async function addEmployees(server: Server, count: number) {
  await many(count, (index) =>
    server.asAdmin('POST', '/users', {
      email: `employee${index}@example.test`,
      name: `Employee ${index}`,
      department: ['Research', 'Sales', 'Support'][index % 3],
    }),
  );
}

/** Requests through the gateway itself, which has to run with its echo provider. */
export async function addRequests(server: Server, count: number) {
  const { secret } = (await server.asAdmin('POST', '/keys', { name: 'browser-test' })) as { secret: string };
  await many(count, async () => {
    const response = await fetch(`${server.gatewayUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
      body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'ebb and flow' }] }),
    });
    if (!response.ok) throw new Error(`gateway: ${response.status} ${await response.text()}`);
    await response.text();
  });
}
