// Generates the TypeScript types of both APIs from the committed OpenAPI snapshots, and the lists of what the server has by name.
// TIDEPOOL_OPENAPI_DIR points elsewhere when a contract change is tried before it is committed.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';

const web = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const source = path.resolve(web, process.env.TIDEPOOL_OPENAPI_DIR ?? '../openapi');
const target = path.join(web, 'shared/src/api');

await mkdir(target, { recursive: true });
for (const api of ['employee', 'admin']) {
  const document = JSON.parse(await readFile(path.join(source, `${api}.json`), 'utf8'));
  const types = astToString(await openapiTS(document));
  await writeFile(
    path.join(target, `${api}.gen.ts`),
    `// Types of the ${api} API, generated from openapi/${api}.json by \`npm run types\`.\n${types}`,
  );
}

const registry = JSON.parse(await readFile(path.join(source, 'registry.json'), 'utf8'));
const lists = Object.entries(registry).map(([name, words]) => {
  const list = `export const ${name.toUpperCase()} = ${JSON.stringify(words)} as const;\n`;
  if (!Array.isArray(words)) return list;
  const type = name.replace(/s$/, '').replace(/(^|_)(.)/g, (_, __, letter) => letter.toUpperCase());
  return `${list}export type ${type} = (typeof ${name.toUpperCase()})[number];\n`;
});
await writeFile(
  path.join(target, 'registry.gen.ts'),
  `// Names that the server has, generated from openapi/registry.json by \`npm run types\`.\n${lists.join('')}`,
);
