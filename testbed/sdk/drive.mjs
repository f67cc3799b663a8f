// drive.mjs runs cases with the official Node SDKs: the plan on standard input, a line of JSON per case and target on standard output.
// SDK_MODULES is the node_modules folder that testbed/install.sh made; testbed/sdk/cases says what a case is, and drive.py is the
// same for Python.
import path from 'node:path';
import process from 'node:process';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import { setTimeout as sleep } from 'node:timers/promises';

const WIDTH = 8; // cases at once
const require = createRequire(path.join(process.env.SDK_MODULES, 'index.js'));
const { OpenAI } = require('openai');
const { Anthropic } = require('@anthropic-ai/sdk');

// For the requests that are sent compressed: no SDK does so by itself.
const compressing = (url, init) => {
  const headers = new Headers(init.headers);
  headers.set('content-encoding', 'gzip');
  headers.delete('content-length');
  return fetch(url, { ...init, headers, body: gzipSync(init.body) });
};

const clients = new Map();
// A client for each target and its options, made once: each has its connections.
function client(sdk, target, provider, options) {
  const name = JSON.stringify([sdk, target, provider, options]);
  if (!clients.has(name)) {
    const key = options.key ?? target.keys[provider];
    const auth = options.auth ?? 'bearer';
    const given = {
      apiKey: key,
      baseURL: sdk === 'openai' ? target.url + (target.paths[provider] ?? '/v1') : target.url,
      maxRetries: options.retries ?? 0,
      timeout: (options.timeout ?? 60) * 1000,
      defaultHeaders: {
        ...options.headers,
        ...(auth === 'bearer' ? {} : { Authorization: null, [auth]: key }),
      },
      ...(options.gzip ? { fetch: compressing } : {}),
    };
    clients.set(name, sdk === 'openai' ? new OpenAI(given) : new Anthropic(given));
  }
  return clients.get(name);
}

const CALLS = {
  chat: (of) => of.chat.completions,
  responses: (of) => of.responses,
  embeddings: (of) => of.embeddings,
  messages: (of) => of.messages,
  'beta-messages': (of) => of.beta.messages,
  'count-tokens': (of) => of.messages,
  models: (of) => of.models,
  model: (of) => of.models,
};
const METHODS = { 'count-tokens': 'countTokens', models: 'list', model: 'retrieve' };
const FINAL = ['finalChatCompletion', 'finalResponse', 'finalMessage'];

// The parameters, with what earlier steps answered in the places that ask for it: as the SDK's objects, as users pass them.
function filled(value, answers) {
  if (Array.isArray(value)) return value.map((one) => filled(one, answers));
  if (value === null || typeof value !== 'object') return value;
  if (value.$repeat) return value.$repeat[0].repeat(value.$repeat[1]);
  if (value.$from) {
    const [step, ...parts] = value.$from;
    return parts.reduce((at, part) => (Array.isArray(at) ? at.at(Number(part)) : at[part]), answers[step]);
  }
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, answers)]));
}

const received = (seen, response) => {
  seen.status = response.status;
  seen.headers = Object.fromEntries(response.headers.entries());
};

const MODES = {
  async whole(resource, method, params, _, seen) {
    const asked =
      method === 'retrieve' ? resource.retrieve(params.model ?? params.model_id) : resource[method](params);
    const { data, response } = await asked.withResponse();
    received(seen, response);
    seen.value = data;
    return data;
  },

  async chunks(resource, method, params, step, seen) {
    const { data, response } = await resource[method]({ ...params, stream: true }).withResponse();
    received(seen, response);
    seen.chunks = [];
    if (step.leave_after === 0) return data.controller.abort();
    for await (const chunk of data) {
      seen.chunks.push(chunk);
      if (seen.chunks.length === step.leave_after) break;
    }
  },

  // The stream's own bytes, until so many are there.
  async bytes(resource, method, params, step, seen) {
    const response = await resource[method]({ ...params, stream: true }).asResponse();
    received(seen, response);
    const most = step.leave_after ?? Number.MAX_SAFE_INTEGER;
    let got = Buffer.alloc(0);
    const reader = response.body.getReader();
    try {
      while (got.length < most) {
        const { done, value } = await reader.read();
        if (done) break;
        got = Buffer.concat([got, value]);
      }
    } finally {
      seen.raw = got.subarray(0, most).toString('latin1');
      reader.cancel().catch(() => {});
    }
  },

  async helper(resource, _, params, _step, seen) {
    const stream = resource.stream(params);
    const events = [];
    seen.events = events;
    for await (const event of stream) events.push(event.type ?? event.object);
    const final = await stream[FINAL.find((name) => name in stream)]();
    if (stream.response) received(seen, stream.response);
    seen.value = final;
    return final;
  },
};

function failed(error, seen) {
  const { message, status, code, param, type } = error;
  const body = error.error ?? null;
  seen.error = {
    class: error.constructor.name,
    message: String(message),
    status_code: status ?? null,
    code: code ?? null,
    param: param ?? null,
    type: type ?? null,
    body,
    request_id: error.requestID ?? null,
  };
  if (error.headers?.entries) received(seen, { status: status ?? null, headers: error.headers });
}

const DIRECT = 'direct';

async function run(plan, kase, target) {
  const { gateway_key: own, ...options } = kase.client;
  if (target !== DIRECT && own) options.key = own;
  const { others } = plan.targets[target];
  const answers = [];
  const steps = [];
  for (const step of kase.steps) {
    const seen = {};
    const began = performance.now();
    const key = others[step.by] ? { key: others[step.by] } : {};
    const of = client(kase.sdk, plan.targets[target], kase.provider, { ...options, ...key });
    try {
      const params = filled(step.params, answers);
      const method = METHODS[step.call] ?? 'create';
      answers.push(await MODES[step.mode ?? 'whole'](CALLS[step.call](of), method, params, step, seen));
    } catch (error) {
      failed(error, seen);
      answers.push(undefined);
    }
    seen.seconds = Math.round(performance.now() - began) / 1000;
    steps.push(seen);
  }
  process.stdout.write(`${JSON.stringify({ case: kase.name, target, steps })}\n`);
}

const given = [];
for await (const piece of process.stdin) given.push(piece);
const plan = JSON.parse(Buffer.concat(given).toString());
const targets = Object.keys(plan.targets);
const todo = plan.cases.flatMap((kase) =>
  targets.filter((target) => target === DIRECT || !kase.alone).map((target) => [kase, target]),
);
const worker = async () => {
  for (let next = todo.shift(); next; next = todo.shift()) await run(plan, ...next);
};
await Promise.all(Array.from({ length: WIDTH }, worker));
// A provider that asked to wait is left alone: what comes after such a case comes after its rest.
const inTurn = async (provider, target) => {
  for (const kase of plan.cases.filter((one) => one.alone && one.provider === provider)) {
    await run(plan, kase, target);
    await sleep(kase.rest * 1000);
  }
};
const gateways = targets.filter((target) => target !== DIRECT);
await Promise.all(
  gateways.flatMap((target) => ['openai', 'anthropic'].map((provider) => inTurn(provider, target))),
);
process.stdout.write('', () => process.exit(0));
