// shots.mjs FOLDER EMPLOYEE_URL ADMIN_URL [WORD]   pictures of every page of both apps, 1280 and 375 px, light and dark, of a running
// `tidepool-lab demo` with its logins; WORD limits them to names that contain it. FOLDER is outside of the tree: nothing of it is kept.
/* global document, location -- of the page */
import { chromium } from '@playwright/test';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';

const [folder, employeeUrl, adminUrl, word = ''] = process.argv.slice(2);
if (adminUrl === undefined) {
  console.error('shots.mjs FOLDER EMPLOYEE_URL ADMIN_URL [WORD]');
  process.exit(2);
}

const places = JSON.parse(await readFile(path.join(import.meta.dirname, '../e2e/places.json'), 'utf8'));

const SIDES = [
  {
    name: 'employee',
    url: employeeUrl,
    email: 'jonas@demo.example',
    tokenKey: 'tidepool.employee.token',
    records: {},
  },
  {
    name: 'admin',
    url: adminUrl,
    email: 'admin@demo.example',
    tokenKey: 'tidepool.admin.token',
    records: {
      instance: 'instances',
      server: 'servers',
      user: 'users?sort=name',
      task: 'tasks',
      item: 'marketplace-items',
      request: 'llm-request-logs',
    },
  },
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update'],
});
await mkdir(folder, { recursive: true });
for (const { name, url, email, tokenKey, records } of SIDES) {
  const answer = await fetch(`${url}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: 'tidepool-demo' }),
  });
  const { data } = await answer.json();
  /** The first record of each kind stands for all. */
  const ids = {};
  for (const [kind, list] of Object.entries(records)) {
    const headers = { authorization: `Bearer ${data.token}` };
    const rows = await (await fetch(`${url}/api/v1/${list}`, { headers })).json();
    ids[kind] = rows.data.list[0].id;
  }
  for (const width of [1280, 375]) {
    for (const colorScheme of ['light', 'dark']) {
      const context = await browser.newContext({
        viewport: { width, height: width === 375 ? 812 : 800 },
        colorScheme,
        reducedMotion: 'reduce',
        locale: 'en-US',
      });
      await context.addInitScript(
        ([key, token]) => {
          if (location.pathname !== '/login') localStorage.setItem(key, token);
        },
        [tokenKey, data.token],
      );
      const page = await context.newPage();
      for (const place of places[name]) {
        const file = `${name}-${place.replace(/[^a-z]+/g, '_').replace(/^_|_$/g, '') || 'home'}-${width}-${colorScheme}.png`;
        if (!file.includes(word)) continue;
        if (place === '/login') await page.context().clearCookies();
        await page.goto(url + place.replace(/\{(\w+)\}/g, (_, kind) => ids[kind]));
        await page.getByRole('heading', { level: 1 }).or(page.getByRole('dialog')).first().waitFor();
        await page.waitForFunction(() => !document.body.innerText.includes('Loading…'));
        await page.waitForTimeout(700);
        await page.screenshot({ path: path.join(folder, file), fullPage: width === 1280 });
      }
      await context.close();
    }
  }
}
await browser.close();
