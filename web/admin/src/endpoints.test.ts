// Nothing needs curl: every operation of the administration API is used somewhere in the console.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

/** What the console leaves out, and why. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  'GET /audit/logs': 'the entries of /audit-logs by other parameters',
  'GET /audit/request-logs': 'the items of /llm-request-logs by other parameters',
  'GET /models/{id}': 'an item of /models is the whole record',
  'GET /professions/{id}': 'a row of /professions is the whole record',
  'GET /providers/{id}': 'an item of /providers is the whole record',
  'GET /auth/sso/callback': 'where the identity provider sends the browser',
  'POST /task-queue/{id}/retry': 'another name of /tasks/{id}/retry',
};

const SOURCES = [import.meta.dirname, path.join(import.meta.dirname, '../../shared/src')];
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

const text = SOURCES.flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.tsx?$/.test(file) && !/\.(test|gen)\.ts/.test(file))
    .map((file) => readFileSync(path.join(folder, file), 'utf8')),
).join('\n');

const document = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../../openapi/admin.json'), 'utf8'),
) as { paths: Record<string, Record<string, unknown>> };

const operations = Object.entries(document.paths).flatMap(([place, methods]) =>
  Object.keys(methods)
    .filter((method) => METHODS.includes(method))
    .map((method) => `${method.toUpperCase()} ${place}`),
);

/** Either a call of the typed client, or, where that cannot be, an address that is read by itself. */
function isUsed(operation: string): boolean {
  const [method = '', place = ''] = operation.split(' ');
  const literal = (part: string) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const called = new RegExp(`api\\s*\\.${method}\\(\\s*'${literal(place)}'`);
  const address = place
    .split(/\{\w+\}/)
    .map(literal)
    .join('\\$\\{[^}]+\\}');
  const read = new RegExp(`api/v1${address}['"\`?]`);
  return called.test(text) || (method === 'GET' && read.test(text));
}

it.each(operations)('%s', (operation) => {
  expect(isUsed(operation)).toBe(!(operation in LEFT_OUT));
});

it('leaves out only what there is', () => {
  expect(Object.keys(LEFT_OUT).filter((operation) => !operations.includes(operation))).toEqual([]);
});
