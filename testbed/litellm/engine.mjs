// Prisma's query engine for the real LiteLLM in the tests. LiteLLM wants the native engine, which comes from a place that
// the registries do not have; this is Prisma's own WebAssembly engine behind the HTTP protocol of the native one, with
// PostgreSQL through `pg`. It answers `--version` as the release that prisma-client-py asks for.
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { parse } from 'graphql';
import pg from 'pg';

const ENGINE = '393aa359c9ad4a4bb28630fb5613f9c281cde053';
if (process.argv.includes('--version')) {
  console.log(`query-engine ${ENGINE}`);
  process.exit(0);
}

const require = createRequire(import.meta.url);
const { PrismaPg } = require('@prisma/adapter-pg');
const { bindAdapter } = require('@prisma/driver-adapter-utils');
const port = Number(process.argv[process.argv.indexOf('-p') + 1]);

/** The engine's class, out of its WebAssembly. */
async function load() {
  const folder = new URL('./node_modules/@prisma/query-engine-wasm/postgresql/', import.meta.url).pathname;
  // A module by its name's ending: the package says nothing of its type.
  const glue = new URL('./engine_glue.mjs', import.meta.url);
  fs.copyFileSync(`${folder}query_engine_bg.js`, glue);
  const exported = await import(glue);
  const wasm = fs.readFileSync(`${folder}query_engine_bg.wasm`);
  const { instance } = await WebAssembly.instantiate(wasm, { './query_engine_bg.js': exported });
  exported.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start?.();
  return exported.QueryEngine;
}

function databaseUrl() {
  const [first] = JSON.parse(process.env.OVERWRITE_DATASOURCES || '[]');
  const url = new URL(first?.url ?? process.env.DATABASE_URL);
  // Prisma's own parameters, which PostgreSQL does not know.
  url.search = '';
  return url.toString();
}

const generator = 'generator client {\n provider = "prisma-client-js"\n previewFeatures = ["driverAdapters"]\n}';
const datamodel = fs
  .readFileSync(process.env.PRISMA_DML_PATH, 'utf8')
  .replace(/generator\s+client\s*\{[^}]*\}/, generator);
const QueryEngine = await load();
const adapter = bindAdapter(new PrismaPg(new pg.Pool({ connectionString: databaseUrl(), max: 10 })));
const engine = new QueryEngine({ datamodel, logLevel: 'error', logQueries: false }, () => {}, adapter);
await engine.connect('{}');

/** The fields of each model that hold JSON: their values are texts in the client's query. */
const jsonFields = new Map(
  [...datamodel.matchAll(/model\s+(\w+)\s*\{([\s\S]*?)\n\}/g)].map(([, model, body]) => [
    model,
    new Set([...body.matchAll(/^\s*(\w+)\s+Json\b/gm)].map(([, field]) => field)),
  ]),
);

const ACTIONS = [
  'findUniqueOrThrow',
  'findFirstOrThrow',
  'findUnique',
  'findFirst',
  'findMany',
  'createOne',
  'createMany',
  'updateOne',
  'updateMany',
  'deleteOne',
  'deleteMany',
  'upsertOne',
  'aggregate',
  'groupBy',
  'queryRaw',
  'executeRaw',
];

function value(node, json, field) {
  switch (node.kind) {
    case 'StringValue':
      return json.has(field) ? { $type: 'Json', value: node.value } : node.value;
    case 'ObjectValue':
      return Object.fromEntries(node.fields.map((one) => [one.name.value, value(one.value, json, one.name.value)]));
    case 'ListValue':
      return node.values.map((one) => value(one, json));
    case 'IntValue': {
      const number = Number(node.value);
      return Math.abs(number) < 2 ** 31 ? number : { $type: 'BigInt', value: node.value };
    }
    case 'FloatValue':
      return Number(node.value);
    case 'NullValue':
      return null;
    default:
      return node.value;
  }
}

function argumentsOf(node, json) {
  return Object.fromEntries((node.arguments ?? []).map((one) => [one.name.value, value(one.value, json)]));
}

function selection(set, json) {
  const selected = (field) =>
    field.selectionSet ? { arguments: argumentsOf(field, json), selection: selection(field.selectionSet, json) } : true;
  return Object.fromEntries((set?.selections ?? []).map((field) => [field.name.value, selected(field)]));
}

/** The client speaks GraphQL, this engine the JSON protocol. */
function translated(text) {
  const [field] = parse(text).definitions[0].selectionSet.selections;
  const action = ACTIONS.find((one) => field.name.value.startsWith(one));
  const modelName = field.name.value.slice(action.length) || undefined;
  const json = jsonFields.get(modelName) ?? new Set();
  return {
    modelName,
    action,
    query: { arguments: argumentsOf(field, json), selection: selection(field.selectionSet, json) },
  };
}

/** Values without the types that only the JSON protocol has. */
function plain(data) {
  if (Array.isArray(data)) return data.map(plain);
  if (data === null || typeof data !== 'object') return data;
  if ('$type' in data && 'value' in data) {
    const number = Number(data.value);
    return data.$type === 'BigInt' && Number.isSafeInteger(number) ? number : data.value;
  }
  return Object.fromEntries(Object.entries(data).map(([key, one]) => [key, plain(one)]));
}

const answered = (result) => (result.errors ? result : { data: { result: plain(Object.values(result.data)[0]) } });

async function answer(url, body, transaction) {
  if (url === '/status') return { status: 'ok' };
  if (url === '/transaction/start') return JSON.parse(await engine.startTransaction(body, '{}'));
  const [, id, end] = /^\/transaction\/([^/]+)\/(commit|rollback)$/.exec(url) ?? [];
  if (end === 'commit') return JSON.parse((await engine.commitTransaction(id, '{}')) || '{}');
  if (end === 'rollback') return JSON.parse((await engine.rollbackTransaction(id, '{}')) || '{}');
  // An array of names is a type that `pg` hands out as a text.
  const asked = JSON.parse(body.replaceAll('ARRAY_AGG(viewname)', 'ARRAY_AGG(viewname::text)'));
  if (!asked.batch) {
    const query = JSON.stringify(translated(asked.query));
    return answered(JSON.parse(await engine.query(query, '{}', transaction)));
  }
  const batch = asked.batch.map((one) => translated(one.query));
  const query = JSON.stringify({ batch, transaction: asked.transaction ? {} : undefined });
  const result = JSON.parse(await engine.query(query, '{}', transaction));
  return result.batchResult ? { batchResult: result.batchResult.map(answered) } : result;
}

http
  .createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    let said;
    try {
      said = await answer(request.url, body, request.headers['x-transaction-id']);
    } catch (error) {
      console.error(error);
      const fault = { is_panic: false, message: String(error), meta: {}, error_code: 'P2000' };
      said = { errors: [{ error: String(error), user_facing_error: fault }] };
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(said));
  })
  .listen(port, '127.0.0.1');

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0));
// It ends with the LiteLLM that started it.
setInterval(() => {
  if (process.ppid === 1) process.exit(0);
}, 1000);
