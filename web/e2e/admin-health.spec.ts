// What open pages of the console show when an assistant really stops: the platform's own check finds it, nobody touches the page.
import { mkdir } from 'node:fs/promises';
import { addLocalServer, Assistant, ServiceManager } from './assistant';
import { appOf, expect, openSignedIn, test } from './fixtures';
import { Server } from './server';

/** The platform's check of the whole fleet, as its clock would start it; one that goes on already is waited for. */
async function check(server: Server) {
  await expect(async () => {
    await server.asAdmin('POST', '/job-runs/health_check/run');
  }).toPass();
}

test('an instance that stops turns red on the open overview and in the open list by itself', async ({
  page,
  context,
}) => {
  test.setTimeout(120_000);
  const services = await ServiceManager.start();
  const server = await Server.start(() => ({ TIDEPOOL_PROVIDER_ECHO: 'true', ...services.settings }));
  // Looks come when the test says so: the scan of the logs, at every fifth minute, writes down how instances are, too.
  for (const job of ['health_check', 'log_scan', 'auto_recovery']) {
    await server.asAdmin('PATCH', `/jobs/${job}`, { paused: true });
  }
  // Whoever owns its home is expected on its port.
  const home = `${services.folder}/pearl`;
  await mkdir(home);
  const host = await addLocalServer(server);
  const assistant = await Assistant.start(server, host, 'pearl', null, undefined, home);
  const list = await context.newPage();
  try {
    await services.watch(assistant);
    const app = await appOf('admin', server);
    await openSignedIn(page, app, server);
    await openSignedIn(list, app, server, '/instances');
    const row = list.getByRole('row', { name: /Assistant pearl/ });
    await expect(row).toContainText('Unknown');
    for (const one of [page, list]) await one.evaluate(() => Object.assign(window, { untouched: true }));

    await check(server);
    await expect(page.getByRole('link', { name: /^Healthy/ })).toHaveText('Healthy1', { timeout: 30_000 });
    await expect(page.getByText('All well')).toBeVisible();
    await expect(row).toContainText('Healthy', { timeout: 30_000 });

    await assistant.stop();
    await check(server);
    await expect(page.getByRole('link', { name: /^Unhealthy/ })).toHaveText('Unhealthy1', {
      timeout: 30_000,
    });
    await expect(page.getByText('Need attention: 1')).toHaveClass(/text-danger/);
    await expect(row).toContainText('Unhealthy', { timeout: 30_000 });
    for (const one of [page, list]) expect(await one.evaluate(() => 'untouched' in window)).toBe(true);

    // Both checks stand in its strip, by keyboard too.
    await list
      .getByRole('button', { name: /Assistant pearl/ })
      .first()
      .click();
    const strip = list.getByRole('slider', { name: 'Last 60 checks' });
    await expect(strip).toHaveAttribute('aria-valuetext', /: Unhealthy$/);
    await expect(strip.locator('[data-health=healthy]')).not.toHaveCount(0);
    await strip.press('Home');
    await expect(strip).toHaveAttribute('aria-valuetext', /: Healthy$/);
  } finally {
    // Their live events would break off.
    await page.goto('about:blank');
    await list.close();
    await assistant.stop();
    await server.stop();
    await services.stop();
  }
});
