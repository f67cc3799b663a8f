// What is measured by the clock, and therefore runs when no other test does.
import { addMany, clickToPaint, MANY_SETTINGS } from './admin-fleet';
import { appOf, expect, openSignedIn, test } from './fixtures';
import { Server } from './server';

test('a click shows the list of 5,000 within 300 ms', async ({ page }) => {
  const full = await Server.start(() => MANY_SETTINGS);
  try {
    await addMany(full, 5_000);
    const app = await appOf('admin', full);
    await openSignedIn(page, app, full, '/instances');
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      times.push(await clickToPaint(page));
    }
    // Other work on the machine can only add to it.
    expect(Math.min(...times)).toBeLessThan(300);
    // Its live events would break off.
    await page.goto('about:blank');
  } finally {
    await full.stop();
  }
});
