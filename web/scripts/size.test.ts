// @vitest-environment node
// The limit of a first load, held by the script that ends the build: run on apps made up for it.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

interface Chunk {
  file: string;
  name?: string;
  isEntry?: boolean;
  imports?: string[];
  css?: string[];
}

const MANIFEST: Record<string, Chunk> = {
  'index.html': { file: 'entry.js', isEntry: true, imports: ['_shared.js'], css: ['entry.css'] },
  '_shared.js': { file: 'shared.js' },
  'src/frame.tsx': { file: 'frame.js', imports: ['_shared.js'] },
  'src/pages/login.tsx': { file: 'login.js' },
  'src/pages/chat.tsx': { file: 'chat.js', imports: ['_shared.js', 'index.html'] },
};

let web: string;

function put(file: string, kilobytes = 0) {
  const place = path.join(web, file);
  mkdirSync(path.dirname(place), { recursive: true });
  // What is random does not shrink.
  writeFileSync(place, randomBytes(kilobytes * 1024));
}

function putApp(app: string, manifest = MANIFEST, sizes: Record<string, number> = {}) {
  const names = ['index.html', 'boot.js', 'entry.css', ...Object.values(manifest).map(({ file }) => file)];
  for (const name of names) put(`${app}/dist/${name}`, sizes[name]);
  for (const page of ['login', 'chat']) put(`${app}/src/pages/${page}.tsx`);
  put(`${app}/dist/.vite/manifest.json`);
  writeFileSync(path.join(web, app, 'dist/.vite/manifest.json'), JSON.stringify(manifest));
}

function run() {
  const { status, stdout, stderr } = spawnSync('node', [path.join(web, 'scripts/size.mjs')], {
    encoding: 'utf8',
  });
  const kilobytes = (page: string) =>
    Math.round(Number(new RegExp(`${page} +([\\d.]+) KB`).exec(stdout)?.[1]));
  return { status, stdout, stderr, kilobytes };
}

beforeEach(() => {
  web = mkdtempSync(path.join(tmpdir(), 'tidepool-size-'));
  mkdirSync(path.join(web, 'scripts'));
  copyFileSync(path.join(import.meta.dirname, 'size.mjs'), path.join(web, 'scripts/size.mjs'));
});
afterEach(() => rmSync(web, { recursive: true }));

it('adds up all that a page brings along, each file once, and takes the manifest away', () => {
  putApp('employee', MANIFEST, {
    'entry.js': 10,
    'shared.js': 20,
    'entry.css': 5,
    'frame.js': 40,
    'chat.js': 80,
  });
  putApp('admin');
  const { status, kilobytes } = run();
  expect(status).toBe(0);
  expect(kilobytes('employee login')).toBe(35);
  expect(kilobytes('employee chat')).toBe(155);
  expect(kilobytes('admin chat')).toBe(0);
  expect(existsSync(path.join(web, 'employee/dist/.vite'))).toBe(false);
});

it('fails when one page of one app is over the limit, and names it', () => {
  putApp('employee');
  putApp('admin', MANIFEST, { 'chat.js': 201 });
  const { status, stdout } = run();
  expect(status).toBe(1);
  expect(stdout).toMatch(/admin chat +\d+\.\d KB gzip {2}OVER THE LIMIT/);
  expect(stdout.match(/OVER THE LIMIT/g)).toHaveLength(1);
});

it('finds a page from which other chunks take a module, which the manifest has by its name only', () => {
  const { 'src/pages/chat.tsx': chat, ...rest } = MANIFEST;
  putApp(
    'employee',
    { ...rest, '_chat-1.js': { ...chat, file: 'chat.js', name: 'chat' } },
    { 'chat.js': 30 },
  );
  putApp('admin');
  const { status, kilobytes } = run();
  expect(status).toBe(0);
  expect(kilobytes('employee chat')).toBe(30);
});

it('fails where a page is in no chunk, instead of counting nothing for it', () => {
  putApp(
    'employee',
    Object.fromEntries(Object.entries(MANIFEST).filter(([key]) => key !== 'src/pages/chat.tsx')),
  );
  putApp('admin');
  const { status, stderr } = run();
  expect(status).not.toBe(0);
  expect(stderr).toContain('employee: the manifest has no src/pages/chat.tsx');
});
