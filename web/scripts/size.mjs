// Holds the first load of every route under the limit: what the browser must fetch (HTML, the entry, the
// route's own chunk, all their static imports, style sheets, the boot script), gzipped. Fails the build when exceeded.
// It is the last step of the build: it also removes the manifest it reads, which has no business in the binary.
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const LIMIT = 200 * 1024;
const web = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

/** All files that loading one manifest entry brings along, itself included. */
function closure(manifest, key, seen = new Set()) {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const dependency of manifest[key].imports ?? []) closure(manifest, dependency, seen);
  return seen;
}

async function gzipped(file) {
  return gzipSync(await readFile(file), { level: 9 }).length;
}

let failed = false;
for (const app of ['employee', 'admin']) {
  const dist = path.join(web, app, 'dist');
  const manifest = JSON.parse(await readFile(path.join(dist, '.vite/manifest.json'), 'utf8'));
  await rm(path.join(dist, '.vite'), { recursive: true });
  const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
  // A chunk from which others take a module has no source in the manifest, only its name.
  const chunk = (source) => {
    const name = path.basename(source, '.tsx');
    const found =
      source in manifest ? [source] : Object.keys(manifest).filter((key) => manifest[key].name === name);
    if (found.length !== 1) throw new Error(`${app}: the manifest has no ${source}`);
    return found[0];
  };
  const pages = await readdir(path.join(web, app, 'src/pages'));
  if (!entry || pages.length === 0) throw new Error(`${app}: the manifest has no entry or no pages`);

  for (const page of pages) {
    const keys = closure(manifest, entry);
    // The login page stands alone; every other page loads inside the signed-in frame.
    if (page !== 'login.tsx') closure(manifest, chunk('src/frame.tsx'), keys);
    closure(manifest, chunk(`src/pages/${page}`), keys);
    const files = new Set(['index.html', 'boot.js']);
    for (const key of keys) {
      files.add(manifest[key].file);
      for (const css of manifest[key].css ?? []) files.add(css);
    }
    let bytes = 0;
    for (const file of files) bytes += await gzipped(path.join(dist, file));
    const over = bytes > LIMIT;
    failed ||= over;
    const name = `${app} ${path.basename(page, '.tsx')}`;
    console.log(
      `${name.padEnd(24)} ${(bytes / 1024).toFixed(1).padStart(7)} KB gzip${over ? '  OVER THE LIMIT' : ''}`,
    );
  }
}
console.log(`limit                    ${(LIMIT / 1024).toFixed(1).padStart(7)} KB per first load`);
if (failed) process.exit(1);
